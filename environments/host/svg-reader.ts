// Reads an SVG as strictly as it can be read: what is not known to do no harm is refused. The browser that shows it is
// told to run and fetch nothing besides.

const SVG = 'http://www.w3.org/2000/svg';

const ELEMENTS = new Set(
  (
    'svg g defs symbol use title desc style path rect circle ellipse line polyline polygon text tspan ' +
    'linearGradient radialGradient stop clipPath mask pattern marker'
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

/** In words, why a text is not shown as a drawing; null where it may be. */
export function whatIsWrongWithSvg(svg: string): string | null {
  const declared = DECLARATION.exec(svg)?.[0] ?? '';
  const open: string[] = [];
  let drawn = false;
  for (PIECE.lastIndex = declared.length; PIECE.lastIndex < svg.length;) {
    const at = PIECE.lastIndex;
    const groups = PIECE.exec(svg)?.groups;
    if (!groups) return `character ${at} begins no element, attribute, text or comment that is taken`;
    const { open: name, attributes = '', empty, close, text } = groups;
    if (text !== undefined) {
      const wrong = open.length === 0 ? outside(text) : wrongText(text, open.at(-1)!);
      if (wrong !== null) return wrong;
    } else if (close !== undefined) {
      if (open.pop() !== close) return `</${close}> closes what is not open`;
    } else if (name !== undefined) {
      if (open.length === 0 && (drawn || name !== 'svg')) return 'it is not one element svg';
      drawn = true;
      const wrong = wrongElement(name, attributes, open.length === 0);
      if (wrong !== null) return wrong;
      if (empty === '') open.push(name);
      if (open.length > DEEPEST) return `elements lie in each other more than ${DEEPEST} deep`;
    }
  }
  if (open.length > 0) return `<${open.at(-1)}> is not closed`;
  return drawn ? null : 'there is no element svg';
}

const outside = (text: string): string | null =>
  text.trim() === '' ? null : 'text lies outside the element svg';

function wrongText(text: string, parent: string): string | null {
  const read = decoded(text);
  if (read === null) return 'it has an entity of its own';
  return parent === 'style' ? wrongStyle(read) : null;
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
    if (wrong !== null) return wrong;
  }
  return isRoot && namespace === null ? `its element svg lacks xmlns="${SVG}"` : null;
}

/** Of a style sheet or an attribute: nothing is fetched but what the drawing itself defines. */
function wrongStyle(value: string): string | null {
  if (/\\/.test(value)) return 'it has a backslash in a style or an attribute';
  if (/@(?!media\b)/i.test(value)) return 'its style has a rule with @';
  if (/url\s*\((?!\s*["']?#)/i.test(value)) return 'it refers to something outside itself';
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
