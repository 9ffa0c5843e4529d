/** What one department of the big shop sells; every product is one type with some attributes, in some options. */
export interface Department {
  name: string;
  types: readonly string[];
  attributes: readonly string[];
  options: Readonly<Record<string, readonly string[]>>;
  /** Cheapest and dearest product, US$. */
  prices: readonly [number, number];
}

const COLOURS = ['black', 'white', 'grey', 'navy', 'red', 'green', 'beige', 'yellow'];
const CLOTHING_SIZES = ['x-small', 'small', 'medium', 'large', 'x-large'];

// Some types share a noun ("desk lamp", "floor lamp"): the reward's type match has something to tell apart.
export const DEPARTMENTS: readonly Department[] = [
  {
    name: 'kitchen',
    types: ['mug', 'bowl', 'frying pan', 'saucepan', 'kettle', 'cutting board', 'knife set', 'water bottle'],
    attributes: ['dishwasher safe', 'non-stick', 'stainless steel', 'bamboo', 'lead free', 'double walled'],
    options: { colour: COLOURS, capacity: ['250 ml', '500 ml', '1 l', '2 l'] },
    prices: [6, 90],
  },
  {
    name: 'clothing',
    types: ['rain jacket', 'winter jacket', 'hoodie', 'shirt', 'trousers', 'pyjamas', 'cardigan', 'swimsuit'],
    attributes: ['machine washable', 'long sleeved', 'quick drying', 'organic cotton', 'slim fit', 'hooded'],
    options: { colour: COLOURS, size: CLOTHING_SIZES },
    prices: [12, 180],
  },
  {
    name: 'shoes',
    types: ['running shoes', 'hiking shoes', 'sandals', 'slippers', 'rain boots', 'winter boots'],
    attributes: ['waterproof', 'wide fit', 'vegan leather', 'memory foam', 'anti-slip', 'arch support'],
    options: { colour: COLOURS, width: ['narrow', 'regular', 'extra wide'] },
    prices: [15, 160],
  },
  {
    name: 'lighting',
    types: ['desk lamp', 'floor lamp', 'lantern', 'string lights', 'night light', 'ceiling lamp'],
    attributes: [
      'dimmable',
      'energy saving',
      'battery powered',
      'remote controlled',
      'warm glow',
      'foldable',
    ],
    options: { finish: ['brass', 'chrome', 'matte black', 'copper'], plug: ['type c', 'type f', 'type g'] },
    prices: [9, 220],
  },
  {
    name: 'furniture',
    types: ['bookshelf', 'office chair', 'dining chair', 'coffee table', 'side table', 'bed frame', 'stool'],
    attributes: [
      'solid wood',
      'easy assembly',
      'space saving',
      'height adjustable',
      'scratch resistant',
      'oak',
    ],
    options: { colour: COLOURS, height: ['low', 'standard', 'tall'] },
    prices: [25, 600],
  },
  {
    name: 'audio',
    types: ['headphones', 'earbuds', 'soundbar', 'turntable', 'radio', 'microphone', 'shelf speaker'],
    attributes: [
      'noise cancelling',
      'wireless',
      'water resistant',
      'fast charging',
      'high fidelity',
      'compact',
    ],
    options: { colour: COLOURS, bundle: ['single', 'with case', 'with stand'] },
    prices: [14, 400],
  },
  {
    name: 'bedding',
    types: ['duvet', 'pillow', 'blanket', 'mattress', 'sheet set', 'quilt'],
    attributes: ['hypoallergenic', 'goose down', 'breathable', 'weighted', 'pure linen', 'allergen tested'],
    options: { colour: COLOURS, width: ['90 cm', '140 cm', '160 cm', '180 cm'] },
    prices: [18, 500],
  },
  {
    name: 'garden',
    types: ['watering can', 'garden hose', 'plant pot', 'bird feeder', 'wheelbarrow', 'parasol'],
    attributes: [
      'frost proof',
      'rust free',
      'self watering',
      'lightweight',
      'recycled plastic',
      'uv resistant',
    ],
    options: { colour: COLOURS, pack: ['one', 'pack of 2', 'pack of 4'] },
    prices: [5, 150],
  },
  {
    name: 'pets',
    types: ['dog bed', 'dog leash', 'cat tree', 'cat litter box', 'aquarium', 'hamster wheel'],
    attributes: ['chew proof', 'odour free', 'washable cover', 'reflective', 'sturdy base', 'quiet'],
    options: { colour: COLOURS, size: ['mini', 'midi', 'maxi'] },
    prices: [7, 190],
  },
  {
    name: 'travel',
    types: ['suitcase', 'backpack', 'neck pillow', 'travel adapter', 'umbrella', 'wallet'],
    attributes: ['carry-on size', 'theft proof', 'ultra light', 'shock proof', 'expandable', 'rfid blocking'],
    options: { colour: COLOURS, lock: ['no lock', 'code lock', 'key lock'] },
    prices: [8, 320],
  },
];

export const BRANDS = [
  'Norda',
  'Velmo',
  'Astrel',
  'Kivo',
  'Lumera',
  'Pontis',
  'Oreva',
  'Sandro',
  'Tilia',
  'Zefra',
];
