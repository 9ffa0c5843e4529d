/** The newest values of an asynchronous function by key, so that a server is not asked again for each call and verdict. */
export function remembered<Argument, Value>(
  most: number,
  keyOf: (argument: Argument) => string,
  make: (argument: Argument) => Promise<Value>,
): (argument: Argument) => Promise<Value> {
  const known = new Map<string, Promise<Value>>();
  return (argument) => {
    const key = keyOf(argument);
    const found = known.get(key);
    if (found !== undefined) return found;
    const value = make(argument);
    known.set(key, value);
    // Whoever asked is told; the next one asks again.
    value.catch(() => known.delete(key));
    if (known.size > most) known.delete(known.keys().next().value!);
    return value;
  };
}
