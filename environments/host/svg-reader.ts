// Reads an SVG as strictly as it can be read: what is not known to do no harm is refused. The browser that shows it is
// told to run and fetch nothing besides.

const SVG = 'http://www.w3.org/2000/svg';

const ELEMENTS = new Set(
  (
    'svg g defs symbol use title desc style path rect circle ellipse line polyline polygon text tspan ' +
    'linearGradient radialGradient stop clipPath pattern'
  ).split(' '),
);
/** Attributes by which something is fetched, run, or named otherwise than it looks. */
const REFUSED = /^(on.*|src|srcset|xml:base|externalResourcesRequired|requiredExtensions|requiredFeatures)$/i;

const NAME = '[A-Za-z_][\\w.:-]*';
/** One piece of markup, wherever the reader stands; all else is refused. */
const PIECE = new RegExp(
  [
    `<(?<open>${NAME})(?<attributes>(?:\\s+${NAME}\\s*=\\s*(?:"[^"<]*"|'[^'<]*'))*)\\s*(?<empty>/?)>`,
    `</(?<close>${NAME})\\s*>`,
    `(?<comment><!--(?:(?!--)[\\s\\S])*-->)`,
    `(?<text>[^<]+)`,
  ].join('|'),
  'y',
);
const ATTRIBUTE = new RegExp(`(${NAME})\\s*=\\s*(?:"([^"]*)"|'([^']*)')`, 'g');
const ENTITY = /&(?:lt|gt|amp|quot|apos|#\d{1,7}|#x[0-9a-fA-F]{1,6});/g;
const DECLARATION = /^\s*<\?xml [^?<>]*\?>/;

/** Deeper elements are no drawing. */
const DEEPEST = 64;
/** Elements that are drawn, those included that are drawn again because something refers to them. */
const MOST_DRAWN = 5000;
/** In characters: each rule is held against each element. */
const LONGEST_STYLE = 5000;

interface Element {
  id: string | null;
  refersTo: string[];
  within: Element[];
}

/** In words, why a text is not shown as a drawing; null where it may be. */
export function whatIsWrongWithSvg(svg: string): string | null {
  const declared = DECLARATION.exec(svg)?.[0] ?? '';
  const open: string[] = [];
  const root: Element = { id: null, refersTo: [], within: [] };
  /** Those that are open, the innermost last. */
  const parents = [root];
  let styles = 0;
  let elements = 0;
  let drawn = false;
  for (PIECE.lastIndex = declared.length; PIECE.lastIndex < svg.length;) {
    const at = PIECE.lastIndex;
    const groups = PIECE.exec(svg)?.groups;
    if (!groups) return `character ${at} begins no element, attribute, text or comment that is taken`;
    const { open: name, attributes = '', empty, close, text } = groups;
    if (text !== undefined) {
      const wrong = open.length === 0 ? outside(text) : wrongText(text, open.at(-1)!);
      if (wrong !== null) return wrong;
      if (open.at(-1) === 'style') styles += text.length;
      if (styles > LONGEST_STYLE) return `its styles are longer than ${LONGEST_STYLE} characters`;
    } else if (close !== undefined) {
      if (open.pop() !== close) return `</${close}> closes what is not open`;
      parents.pop();
    } else if (name !== undefined) {
      if (open.length === 0 && (drawn || name !== 'svg')) return 'it is not one element svg';
      drawn = true;
      const wrong = wrongElement(name, attributes, open.length === 0);
      if (wrong !== null) return wrong;
      if (++elements > MOST_DRAWN) return `it has more than ${MOST_DRAWN} elements`;
      const element = { ...referencesIn(attributes), within: [] };
      parents.at(-1)!.within.push(element);
      if (empty === '') {
        open.push(name);
        parents.push(element);
      }
      if (open.length > DEEPEST) return `elements lie in each other more than ${DEEPEST} deep`;
    }
  }
  if (open.length > 0) return `<${open.at(-1)}> is not closed`;
  return drawn ? wrongReferences(root) : 'there is no element svg';
}

function referencesIn(attributes: string): Pick<Element, 'id' | 'refersTo'> {
  let id: string | null = null;
  const refersTo: string[] = [];
  for (const [, attribute, double, single] of attributes.matchAll(ATTRIBUTE)) {
    const value = decoded((double ?? single)!) ?? '';
    if (/^(xml:)?id$/.test(attribute!)) id = value;
    if (/(^|:)href$/i.test(attribute!)) refersTo.push(value.slice(1));
    for (const [, to] of value.matchAll(/url\s*\(\s*["']?#([^"')]*)/gi)) refersTo.push(to!.trim());
  }
  return { id, refersTo };
}

/** A few lines can have a browser draw billions of elements, by what refers to what refers to something. */
function wrongReferences(root: Element): string | null {
  const called = new Map<string, Element[]>();
  const name = (element: Element): void => {
    if (element.id !== null) called.set(element.id, [...(called.get(element.id) ?? []), element]);
    element.within.forEach(name);
  };
  name(root);
  const counted = new Map<Element, number | 'being counted'>();
  /** Elements that are drawn for this one; too many where it comes back to itself. */
  const drawnFor = (element: Element, depth: number): number => {
    const known = counted.get(element);
    if (known === 'being counted' || depth > 4 * DEEPEST) return Infinity;
    if (known !== undefined) return known;
    counted.set(element, 'being counted');
    let count = 1;
    for (const one of element.within) count += drawnFor(one, depth + 1);
    for (const to of element.refersTo) {
      for (const one of called.get(to) ?? []) count += drawnFor(one, depth + 1);
    }
    counted.set(element, count);
    return count;
  };
  const count = drawnFor(root, 0);
  if (count === Infinity) return 'its elements refer to each other without end';
  // The root is no element of it.
  return count - 1 > MOST_DRAWN
    ? `${count - 1} elements are drawn for it, with those that are referred to; at most ${MOST_DRAWN} are taken`
    : null;
}

const outside = (text: string): string | null =>
  text.trim() === '' ? null : 'text lies outside the element svg';

function wrongText(text: string, parent: string): string | null {
  const read = decoded(text);
  if (read === null) return 'it has an entity of its own';
  if (parent !== 'style') return null;
  // What elements refer to is seen in themselves alone.
  if (/url\s*\(/i.test(read)) return 'its style refers to something';
  // Such a rule may look at all elements for each of them.
  if (/:\s*(has|is|where|not|nth-[\w-]+)\s*\(/i.test(read))
    return 'its style has a rule that looks at others';
  return wrongStyle(read);
}

function wrongElement(name: string, attributes: string, isRoot: boolean): string | null {
  if (!ELEMENTS.has(name)) return `<${name}> is not taken`;
  let namespace: string | null = null;
  for (const [, attribute, double, single] of attributes.matchAll(ATTRIBUTE)) {
    const value = decoded((double ?? single)!);
    if (value === null) return `the attribute ${attribute} has an entity of its own`;
    if (REFUSED.test(attribute!)) return `the attribute ${attribute} is not taken`;
    if (attribute === 'xmlns') {
      if (value !== SVG)
        return `its name space is ${JSON.stringify(value.slice(0, 100))}, and not that of SVG`;
      namespace = value;
    }
    if (/(^|:)href$/i.test(attribute!) && !value.startsWith('#'))
      return 'it refers to something outside itself';
    // Also those of `fill`, `mask` and the like may name an address.
    const wrong = attribute === 'd' ? null : wrongStyle(value);
    if (/^filter$/i.test(attribute!)) return 'it has a filter';
    if (wrong !== null) return wrong;
  }
  return isRoot && namespace === null ? `its element svg lacks xmlns="${SVG}"` : null;
}

/** Of a style sheet or an attribute: nothing is fetched but what the drawing itself defines. */
function wrongStyle(value: string): string | null {
  if (/\\/.test(value)) return 'it has a backslash in a style or an attribute';
  if (/@(?!media\b)/i.test(value)) return 'its style has a rule with @';
  if (/url\s*\((?!\s*["']?#)/i.test(value)) return 'it refers to something outside itself';
  // Each blurs a whole picture, and they lie in each other.
  if (/filter\s*:/i.test(value)) return 'it has a filter';
  if (/(image-set|expression|javascript:|-moz-binding)/i.test(value))
    return 'its style may do more than draw';
  return null;
}

/** Text with its characters instead of their names; null where something else is named. */
function decoded(text: string): string | null {
  const named: Record<string, string> = {
    '&lt;': '<',
    '&gt;': '>',
    '&amp;': '&',
    '&quot;': '"',
    '&apos;': "'",
  };
  if (text.replace(ENTITY, '').includes('&')) return null;
  return text.replace(ENTITY, (entity) => {
    const number = /^&#(x?)(.*);$/.exec(entity);
    if (!number) return named[entity]!;
    const code = Number.parseInt(number[2]!, number[1] === 'x' ? 16 : 10);
    return code <= 0x10ffff ? String.fromCodePoint(code) : '\ufffd';
  });
}
