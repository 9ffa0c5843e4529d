import { Interpreter } from '@huggingface/jinja';
import type { WorkBudget } from './work-budget.ts';

export type Evaluate = Interpreter['evaluate'];
export type Node = NonNullable<Parameters<Evaluate>[0]>;
export type Scope = Parameters<Evaluate>[1];
export type Value = ReturnType<Evaluate>;
/** The fields of the syntax tree that are looked at here; which a node has depends on its `type`. */
export interface Fields {
  type: string;
  value?: unknown;
  operand?: Fields;
  filter?: Fields;
  callee?: Fields;
  object?: Fields;
  property?: Fields;
  computed?: boolean;
  args?: Fields[];
  argument?: Fields;
  key?: Fields;
  test?: Fields;
  negate?: boolean;
  operator?: { value: string };
  left?: Fields;
  right?: Fields;
  iterable?: Fields;
  lhs?: Fields;
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
/** Filters whose arguments decide how much they do. */
const FILTERS_WITH_COST = new Set(['replace', 'join', 'indent', 'map', 'sort', 'dictsort']);
/** What runs through a list once and looks into nothing. */
const SHALLOW_FILTERS = new Set(['length', 'first', 'last', 'list', 'reverse', 'default', 'safe', 'items']);

/**
 * The template engine, under a bound of work and memory: a template comes with somebody's model, and may be a loop in a
 * loop, or a text that doubles forty times. Each evaluated node is paid for, and each operation that can do more than a
 * fixed amount pays *before* it runs, by the sizes of what it is given. So operands are evaluated first, and the engine
 * is given what is `known`. Concatenated text costs nothing until it is read: V8 keeps it as a tree.
 */
export class BoundedInterpreter extends Interpreter {
  protected readonly budget: WorkBudget;
  private depth = 0;
  /** Operands that have been evaluated, until the engine asks for them, which it does next. */
  private readonly known = new Map<object, Value>();

  constructor(scope: Scope, budget: WorkBudget) {
    super(scope);
    this.budget = budget;
  }

  override evaluate(statement: Node | undefined, scope: Scope): Value {
    const node: Fields | undefined = statement;
    if (this.known.size > 0 && node !== undefined) {
      const value = this.known.get(node);
      if (value !== undefined) {
        this.known.delete(node);
        return value;
      }
    }
    // A variable is looked for in every scope around it.
    this.budget.spend(1 + this.depth / 32);
    this.depth++;
    try {
      const value = this.bounded(node, scope);
      if (value.type === 'StringValue') this.budget.hold((value.value as string).length);
      return value;
    } finally {
      // `continue` is thrown, too.
      this.depth--;
    }
  }

  private bounded(node: Fields | undefined, scope: Scope): Value {
    switch (node?.type) {
      case 'Identifier': {
        const value = this.engine(node, scope);
        // The engine throws and catches an error for each.
        if (value.type === 'UndefinedValue') this.budget.spend(8);
        return value;
      }
      case 'Macro':
      case 'CallStatement':
        // Its body is searched for names.
        this.budget.spend(this.budget.sourceLength / 16);
        return this.engine(node, scope);
      case 'For': {
        const { iterable } = node;
        const chosen = iterable!.type === 'SelectExpression' ? iterable!.lhs! : iterable!;
        const items = this.evaluate(chosen, scope);
        this.budget.spend(4 * sizeOf(items));
        this.known.set(chosen, items);
        return this.engine(node, scope);
      }
      case 'BinaryExpression': {
        const operator = node.operator!.value;
        if (operator === 'and' || operator === 'or') return this.engine(node, scope);
        const left = this.evaluate(node.left, scope);
        const right = this.evaluate(node.right, scope);
        this.payForBinary(operator, left, right);
        this.known.set(node.left!, left).set(node.right!, right);
        return this.engine(node, scope);
      }
      case 'TestExpression': {
        const operand = this.evaluate(node.operand, scope);
        this.budget.spend(sizeOf(operand) / 16);
        this.known.set(node.operand!, operand);
        return this.engine(node, scope);
      }
      case 'FilterStatement': {
        const operand = { type: 'Program', body: node.body! };
        const filtered: Fields = { type: 'FilterExpression', operand, filter: node.filter! };
        return this.evaluate(filtered, scope);
      }
      case 'FilterExpression':
        return this.filtered(node, scope);
      case 'MemberExpression':
        return this.member(node, scope);
      case 'Settled':
        return node.value as Value;
      default:
        return this.engine(node, scope);
    }
  }

  private engine(node: Fields | undefined, scope: Scope): Value {
    return super.evaluate(node, scope);
  }

  /** Arguments as nodes that have been evaluated. */
  private settledArguments(args: readonly Fields[], scope: Scope): Fields[] {
    const settled = (node: Fields): Fields => ({
      type: 'Settled',
      value: this.evaluate(node, scope),
    });
    return args.flatMap((argument): Fields[] => {
      if (argument.type === 'KeywordSpreadExpression') throw new Error('it unpacks ** into a filter');
      if (argument.type === 'KeywordArgumentExpression') {
        return [{ ...argument, value: settled(argument.value as Fields) }];
      }
      if (argument.type !== 'SpreadExpression') return [settled(argument)];
      const { value } = this.evaluate(argument.argument, scope);
      if (!Array.isArray(value)) throw new Error('it unpacks * of what is no list');
      return value.map((item: Value) => ({ type: 'Settled', value: item }));
    });
  }

  private payForBinary(operator: string, left: Value, right: Value): void {
    const [size, other] = [sizeOf(left), sizeOf(right)];
    const lists = isList(left) && isList(right);
    switch (operator) {
      case '~':
      case '+':
        if (lists) this.budget.spend(size + other);
        else assertPrintable(left, right);
        break;
      case '==':
      case '!=':
        // JavaScript would print a list to compare it with text.
        if (CONTAINERS.has(left.type) !== CONTAINERS.has(right.type)) assertPrintable(left, right);
        this.budget.spend(Math.min(size, other) / 16);
        break;
      case 'in':
      case 'not in':
        if (isList(right)) this.budget.spend(other * (1 + size / 16));
        else this.budget.spend(searchCost(other, size));
        break;
      default:
    }
  }

  private filtered(node: Fields, scope: Scope): Value {
    const filter = node.filter!;
    const called = filter.type === 'CallExpression';
    const name = String((called ? filter.callee! : filter).value);
    const operand = this.evaluate(node.operand, scope);
    let settled = node;
    let given: Value[] = [];
    if (called && FILTERS_WITH_COST.has(name)) {
      const args = this.settledArguments(filter.args!, scope);
      given = args.map(({ type, value }) => (type === 'Settled' ? value : (value as Fields).value) as Value);
      settled = { ...node, filter: { ...filter, args } };
    }
    this.payForFilter(name, operand, given);
    this.known.set(node.operand!, operand);
    const value = this.engine(settled, scope);
    this.budget.spend(sizeOf(value) / (isList(value) ? 1 : 16));
    return value;
  }

  private payForFilter(name: string, operand: Value, args: readonly Value[]): void {
    const size = sizeOf(operand);
    if (operand.type === 'StringValue') this.payForText(name, operand.value as string, args);
    else if (SHALLOW_FILTERS.has(name)) this.budget.spend(size);
    else if (name === 'map' || name === 'selectattr' || name === 'rejectattr') {
      this.budget.spend(size * (1 + this.budget.sourceLength / 1024 + sum(args.map(sizeOf)) / 16));
    } else if (isList(operand) && (name === 'join' || name === 'string')) {
      if (name === 'string') assertPrintable(operand);
      assertPrintable(...(operand.value as Value[]));
      const { weight } = this.budget.weigh(operand);
      this.budget.spend(weight + (size * sum(args.map(sizeOf))) / 16);
    } else if (CONTAINERS.has(operand.type)) {
      const { weight } = this.budget.weigh(operand);
      if (name === 'sort' || name === 'dictsort') this.budget.spend(2 * weight * Math.log2(size + 2));
    }
  }

  /** For a filter or a method of a text: `upper`, `split`, `replace`, … */
  private payForText(name: string, text: string, args: readonly Value[]): void {
    const [first, second] = args.map(sizeOf);
    const length = text.length;
    switch (name) {
      case 'split':
        // At most so many parts.
        this.budget.spend(searchCost(length, first ?? 0) + length / Math.max(1, first ?? 1) / 2);
        break;
      case 'replace':
        this.budget.spend(searchCost(length, first ?? 0));
        this.budget.hold(length + (length / Math.max(1, first ?? 1) + 1) * (second ?? 0));
        break;
      case 'join':
        this.budget.spend(length);
        this.budget.hold(length * (1 + (first ?? 0)));
        break;
      case 'indent': {
        const width = args.find(({ type }) => type === 'IntegerValue')?.value ?? 4;
        this.budget.spend(length / 4);
        this.budget.hold(length + text.split('\n').length * Math.abs(Number(width)));
        break;
      }
      default:
        this.budget.spend((length * (1 + (first ?? 0) / 16)) / 16);
    }
  }

  private member(node: Fields, scope: Scope): Value {
    const object = this.evaluate(node.object, scope);
    const { property } = node;
    const computed = node.computed === true;
    let name = computed ? '' : String(property!.value);
    if (computed && property!.type === 'SliceExpression') this.budget.spend(sizeOf(object) / 2);
    else if (computed) {
      const key = this.evaluate(property, scope);
      if (typeof key.value === 'string') name = key.value;
      this.known.set(property!, key);
    }
    this.known.set(node.object!, object);
    const value = this.engine(node, scope);
    const method = value.type === 'FunctionValue' && object.type !== 'NamespaceValue';
    return method ? this.metered(name, object, value) : value;
  }

  /** A method that pays before it runs, wherever the template puts it. */
  private metered(name: string, object: Value, method: Value): Value {
    const run = method.value as (args: Value[], scope: Scope) => Value;
    const value = (args: Value[], scope: Scope): Value => {
      if (object.type === 'StringValue') this.payForText(name, object.value as string, args);
      else if (name === 'dictsort') this.payForFilter(name, object, args);
      else this.budget.spend(sizeOf(object));
      const result = run(args, scope);
      this.budget.spend(sizeOf(result) / (isList(result) ? 1 : 16));
      return result;
    };
    return Object.assign(Object.create(Object.getPrototypeOf(method) as object) as Value, method, { value });
  }
}

/** Throws Error for what Python prints as a `repr`: the order and quotes of its parts are Python's alone. */
export function assertPrintable(...values: readonly Value[]): void {
  if (values.some(({ type }) => CONTAINERS.has(type))) {
    throw new Error('it prints a list or a mapping as Python would; it should use tojson');
  }
}

const isList = ({ type }: Value): boolean => type === 'ArrayValue' || type === 'TupleValue';

/** Letters of a text, items of a list, keys of a mapping; 0 for the rest. */
function sizeOf({ value }: Value): number {
  if (typeof value === 'string' || Array.isArray(value)) return value.length;
  return value instanceof Map ? value.size : 0;
}

const sum = (numbers: readonly number[]): number => numbers.reduce((total, number) => total + number, 0);

/** Looking for one text in another one: at worst, every letter of one against every letter of the other. */
const searchCost = (length: number, wanted: number): number =>
  (length * (1 + Math.min(wanted, length) / 16)) / 16;
