/** A value of the template engine: what it holds, and which of Python's types it stands for. */
export interface TemplateValue {
  type: string;
  value: unknown;
}

export interface PythonJsonOptions {
  ensureAscii?: boolean;
  /** Spaces; null or absent for one line. */
  indent?: number | null;
  /** Between items, and between a key and its value. */
  separators?: readonly [string, string] | null;
  sortKeys?: boolean;
}

/**
 * What `json.dumps(…, ensure_ascii=False)` of Python prints, which is `tojson` in the templates of `transformers`:
 * spaces after `,` and `:`, no HTML escapes, floats as Python writes them.
 * Throws Error for what is not defined, as Python does.
 */
export function pythonJson(value: TemplateValue, options: PythonJsonOptions = {}): string {
  return write(value, options, '\n');
}

/** The same for a plain JSON value. A number without a fraction is an integer: JavaScript knows no difference. */
export function pythonJsonOf(json: unknown): string {
  return pythonJson(typed(json));
}

function typed(json: unknown): TemplateValue {
  if (json === null) return { type: 'NullValue', value: null };
  if (Array.isArray(json)) return { type: 'ArrayValue', value: json.map(typed) };
  switch (typeof json) {
    case 'object':
      return {
        type: 'ObjectValue',
        value: new Map(Object.entries(json).map(([key, member]) => [key, typed(member)])),
      };
    case 'number':
      return { type: Number.isInteger(json) ? 'IntegerValue' : 'FloatValue', value: json };
    case 'boolean':
      return { type: 'BooleanValue', value: json };
    case 'string':
      return { type: 'StringValue', value: json };
    default:
      return { type: 'UndefinedValue', value: undefined };
  }
}

function write(node: TemplateValue, options: PythonJsonOptions, newline: string): string {
  const { indent = null, sortKeys = false } = options;
  const [between, colon] = options.separators ?? [indent === null ? ', ' : ',', ': '];
  const inner = indent === null ? '' : newline + ' '.repeat(indent);
  const list = (open: string, items: string[], close: string): string =>
    items.length === 0
      ? open + close
      : open + inner + items.join(between + inner) + (indent === null ? '' : newline) + close;
  switch (node.type) {
    case 'NullValue':
      return 'null';
    case 'BooleanValue':
      return node.value === true ? 'true' : 'false';
    case 'IntegerValue':
      // Where JavaScript cannot tell, Python's reader of JSON most likely saw a float.
      return Number.isSafeInteger(node.value) ? String(node.value) : pythonFloat(node.value as number);
    case 'FloatValue':
      return pythonFloat(node.value as number);
    case 'StringValue':
      return quoted(node.value as string, options);
    case 'ArrayValue':
    case 'TupleValue': {
      const items = (node.value as TemplateValue[]).map((item) => write(item, options, inner));
      return list('[', items, ']');
    }
    case 'ObjectValue': {
      const members = [...(node.value as Map<string, TemplateValue>)];
      if (sortKeys) members.sort(([a], [b]) => byCodePoint(a, b));
      return list(
        '{',
        members.map(([key, member]) => quoted(key, options) + colon + write(member, options, inner)),
        '}',
      );
    }
    default:
      throw new Error(`a value of type ${node.type.replace(/Value$/u, '')} cannot be written as JSON`);
  }
}

function quoted(text: string, { ensureAscii = false }: PythonJsonOptions): string {
  // JSON.stringify also escapes lone surrogates, which no text that came from Python can have.
  const json = JSON.stringify(text);
  if (!ensureAscii) return json;
  // Noncharacters stand for what a Guard will put in their place.
  return json.replace(
    /[\u007f-\ufdcf\ufdf0-\uffff]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

/** `repr` of a Python float: exponents from 1e16 on and below 1e-4, of two digits at least. */
export function pythonFloat(value: number): string {
  if (Number.isNaN(value)) return 'NaN';
  if (!Number.isFinite(value)) return value > 0 ? 'Infinity' : '-Infinity';
  if (Object.is(value, -0)) return '-0.0';
  const [mantissa, exponent] = value.toExponential().split('e') as [string, string];
  const power = Number(exponent);
  if (value !== 0 && (power < -4 || power >= 16)) {
    return `${mantissa}e${power < 0 ? '-' : '+'}${String(Math.abs(power)).padStart(2, '0')}`;
  }
  const digits = String(value);
  return Number.isInteger(value) ? `${digits}.0` : digits;
}

/** Python compares strings by code point, JavaScript by UTF-16 unit. */
function byCodePoint(a: string, b: string): number {
  const left = Array.from(a, (letter) => letter.codePointAt(0)!);
  const right = Array.from(b, (letter) => letter.codePointAt(0)!);
  for (let i = 0; i < Math.min(left.length, right.length); i++) {
    if (left[i] !== right[i]) return left[i]! - right[i]!;
  }
  return left.length - right.length;
}
