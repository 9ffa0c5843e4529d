import { Interpreter } from '@huggingface/jinja';
import { pythonFloat, pythonJson } from './python-json.ts';
import type { PythonJsonOptions, TemplateValue } from './python-json.ts';

type Evaluate = Interpreter['evaluate'];
type Node = NonNullable<Parameters<Evaluate>[0]>;
type Scope = Parameters<Evaluate>[1];
type Value = ReturnType<Evaluate>;
/** The fields of the syntax tree that are looked at here; which a node has depends on its `type`. */
interface Fields {
  type: string;
  value?: unknown;
  operand?: Fields;
  filter?: Fields;
  callee?: Fields;
  object?: Fields;
  property?: Fields;
  computed?: boolean;
  args?: Fields[];
  key?: Fields;
  test?: Fields;
  negate?: boolean;
  operator?: { value: string };
  left?: Fields;
  right?: Fields;
  body?: Fields[];
}

/** Values with parts, which Python would print as a `repr` and JavaScript as something else. */
const CONTAINERS = new Set([
  'ArrayValue',
  'TupleValue',
  'ObjectValue',
  'KeywordArgumentsValue',
  'NamespaceValue',
]);

/** Of a list that a template makes: one that doubles forty times would end the process and not the template. */
export const MOST_ITEMS = 1_000_000;

const STATEMENTS = new Set([
  'Program',
  'If',
  'For',
  'Set',
  'Macro',
  'CallStatement',
  'FilterStatement',
  'Comment',
  'Break',
  'Continue',
]);

/** What passes these tests in Python: a boolean is a number, and a mapping can be iterated. */
const LOOSE_TESTS: Readonly<Record<string, ReadonlySet<string>>> = {
  number: new Set(['IntegerValue', 'FloatValue', 'BooleanValue']),
  iterable: new Set(['ArrayValue', 'TupleValue', 'StringValue', 'ObjectValue']),
};

/** The engine prints the operands of these where they are of different kinds. */
const PRINTING_OPERATORS = new Set(['~', '+', '==', '!=']);

/** `str.isspace` of Python: unlike JavaScript's, with the separators 1C–1F and NEL, without the byte order mark. */
const PYTHON_SPACE =
  '\t\n\v\f\r\u001c\u001d\u001e\u001f \u0085\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000';

/**
 * The template engine where Python does otherwise: `tojson` as `transformers` defines it, what `strip` strips, what is a number, and how
 * `None`, booleans and floats are printed. What only Python can print (the repr of a list or a mapping) is refused.
 */
export class PythonInterpreter extends Interpreter {
  override evaluate(statement: Node | undefined, scope: Scope): Value {
    const node: Fields | undefined = statement;
    if (node?.type === 'Print') return this.print(node.operand!, scope);
    // An operand that has been evaluated.
    if (node?.type === 'Settled') return node.value as Value;
    if (node?.type === 'CallStatement') return this.printed(super.evaluate(statement, scope), scope);
    if (node?.type === 'FilterExpression') {
      const filter = node.filter!;
      const name = filter.type === 'CallExpression' ? filter.callee!.value : filter.value;
      if (name === 'tojson') return this.tojson(node.operand!, filter.args ?? [], scope);
      if (name === 'trim') return this.strip('strip', node.operand!, filter.args ?? [], scope);
      if (name === 'join' || name === 'string') {
        const operand = this.evaluate(node.operand, scope);
        if (isList(operand)) assertPrintable(...(name === 'string' ? [operand] : (operand.value as Value[])));
        return this.engine({ ...node, operand: settled(operand) }, scope);
      }
    }
    if (node?.type === 'FilterStatement') {
      const operand = { type: 'Program', body: node.body! };
      return this.evaluate({ type: 'FilterExpression', operand, filter: node.filter! } as Fields, scope);
    }
    if (node?.type === 'BinaryExpression' && PRINTING_OPERATORS.has(node.operator!.value)) {
      return this.joined(node, scope);
    }
    if (node?.type === 'TestExpression') {
      const loose = LOOSE_TESTS[String(node.test!.value)];
      if (loose) {
        const holds = loose.has(this.evaluate(node.operand, scope).type);
        return this.boolean(holds !== (node.negate === true), scope);
      }
    }
    const callee = node?.type === 'CallExpression' ? node.callee : undefined;
    if (callee?.type === 'MemberExpression' && callee.computed !== true) {
      const name = callee.property!.value;
      if (name === 'strip' || name === 'lstrip' || name === 'rstrip') {
        return this.strip(name, callee.object!, node!.args ?? [], scope);
      }
    }
    return super.evaluate(statement, scope);
  }

  /** Of two operands that the engine would turn into text, or one list of both. */
  private joined(node: Fields, scope: Scope): Value {
    const [left, right] = [this.evaluate(node.left, scope), this.evaluate(node.right, scope)];
    const compared = node.operator!.value === '==' || node.operator!.value === '!=';
    if (!compared && isList(left) && isList(right)) {
      if ((left.value as Value[]).length + (right.value as Value[]).length > MOST_ITEMS) {
        throw new Error(`it makes a list of more than ${MOST_ITEMS} items`);
      }
    } else if (!compared || CONTAINERS.has(left.type) !== CONTAINERS.has(right.type)) {
      assertPrintable(left, right);
    }
    return this.engine({ ...node, left: settled(left), right: settled(right) }, scope);
  }

  private engine(node: Fields, scope: Scope): Value {
    return super.evaluate(node, scope);
  }

  private print(node: Node, scope: Scope): Value {
    return this.printed(this.evaluate(node, scope), scope);
  }

  private printed(value: Value, scope: Scope): Value {
    assertPrintable(value);
    switch (value.type) {
      case 'NullValue':
        return this.text('None', scope);
      case 'BooleanValue':
        return this.text(value.value === true ? 'True' : 'False', scope);
      case 'FloatValue':
        return this.text(pythonFloat(value.value as number), scope);
      default:
        return value;
    }
  }

  private tojson(operand: Node, args: Fields[], scope: Scope): Value {
    const given: Record<string, TemplateValue> = {};
    const names = ['ensure_ascii', 'indent', 'separators', 'sort_keys'];
    for (const [i, argument] of args.entries()) {
      const named = argument.type === 'KeywordArgumentExpression';
      const name = named ? String(argument.key!.value) : names[i];
      if (name === undefined || !names.includes(name)) throw new Error(`tojson has no argument ${name}`);
      given[name] = this.evaluate(named ? (argument.value as Fields) : argument, scope);
    }
    const separators = given['separators']?.value as TemplateValue[] | null | undefined;
    const options: PythonJsonOptions = {
      ensureAscii: given['ensure_ascii']?.value === true,
      indent: (given['indent']?.value ?? null) as number | null,
      separators: separators
        ? (separators.map(({ value }) => String(value)) as unknown as [string, string])
        : null,
      sortKeys: given['sort_keys']?.value === true,
    };
    return this.text(pythonJson(this.evaluate(operand, scope), options), scope);
  }

  private strip(side: 'strip' | 'lstrip' | 'rstrip', of: Node, args: Fields[], scope: Scope): Value {
    const subject = this.evaluate(of, scope);
    if (subject.type === 'UndefinedValue' && side === 'strip') return this.text('', scope);
    if (subject.type !== 'StringValue') throw new Error(`${side} is for text, not for ${subject.type}`);
    const given = args[0] && this.evaluate(args[0], scope).value;
    const letters = new Set(typeof given === 'string' ? given : PYTHON_SPACE);
    const text = Array.from(subject.value as string);
    let from = 0;
    let to = text.length;
    if (side !== 'rstrip') while (from < to && letters.has(text[from]!)) from++;
    if (side !== 'lstrip') while (to > from && letters.has(text[to - 1]!)) to--;
    return this.text(text.slice(from, to).join(''), scope);
  }

  private boolean(value: boolean, scope: Scope): Value {
    const argument = { type: 'StringLiteral', value: value ? '' : 'not empty' };
    const not = { type: 'UnaryExpression', operator: { value: 'not' }, argument };
    return super.evaluate(not, scope);
  }

  /** The engine does not export its classes of values; a literal makes one. */
  private text(value: string, scope: Scope): Value {
    const literal: Fields = { type: 'StringLiteral', value };
    return super.evaluate(literal, scope);
  }
}

const isList = ({ type }: Value): boolean => type === 'ArrayValue' || type === 'TupleValue';

const settled = (value: Value): Fields => ({ type: 'Settled', value });

/** Throws Error for what Python prints as a `repr`: the order and quotes of its parts are Python's alone. */
function assertPrintable(...values: readonly Value[]): void {
  if (values.some(({ type }) => CONTAINERS.has(type))) {
    throw new Error('it prints a list or a mapping as Python would; it should use tojson');
  }
}

/** Marks what a template prints, so that it can be printed as Python would. Changes the tree in place. */
export function markPrints(node: unknown): void {
  if (typeof node !== 'object' || node === null) return;
  for (const body of ['body', 'alternate', 'defaultBlock'] as const) {
    const statements = (node as Record<string, unknown>)[body];
    if (!Array.isArray(statements)) continue;
    for (const [i, statement] of (statements as Fields[]).entries()) {
      if (STATEMENTS.has(statement.type)) markPrints(statement);
      else statements[i] = { type: 'Print', operand: statement };
    }
  }
}
