import type { z } from 'zod';
import { print } from '../printable.ts';
import type { OutputName, OUTPUTS } from './outputs.ts';

type Output<Name extends OutputName> = z.input<(typeof OUTPUTS)[Name]>;

type DeepReadonly<T> = T extends object ? { readonly [Key in keyof T]: DeepReadonly<T[Key]> } : T;

// Of a union each member is looked at, which a conditional type does.
type KeysOf<T> = T extends unknown ? keyof T : never;
type FieldOf<T, Key> = T extends unknown ? (Key extends keyof T ? T[Key] : never) : never;

/** Names of fields that a value has, at any depth, and its schema has not: an object of more fields is otherwise assignable. */
type Undescribed<Value, Schema> = unknown extends Schema
  ? never
  : Value extends readonly (infer One)[]
    ? Undescribed<One, Extract<Schema, readonly unknown[]>[number]>
    : Value extends object
      ? {
          [Key in keyof Value]-?: Key extends KeysOf<Schema>
            ? Undescribed<Value[Key], FieldOf<Schema, Key>>
            : string extends KeysOf<Schema>
              ? Undescribed<Value[Key], FieldOf<Schema, string>>
              : Key;
        }[keyof Value]
      : never;

/** A line of what `--json` promises of a command: the compiler holds it to its schema, and tests what is really printed. */
export function printJson<Name extends OutputName, Value extends DeepReadonly<Output<Name>>>(
  _command: Name,
  value: Value &
    ([Undescribed<Value, Output<Name>>] extends [never] ? unknown : { no: Undescribed<Value, Output<Name>> }),
): void {
  print(JSON.stringify(value));
}
