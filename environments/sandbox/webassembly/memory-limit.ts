/** WebAssembly counts memory in pages of this size. */
const PAGE = 65_536;
const MEMORY_SECTION = 5;
const HAS_MAXIMUM = 1;

/**
 * A module whose only memory cannot grow beyond `bytes`. The format: WebAssembly core specification, binary format,
 * modules. Throws where the module needs more to begin with, or has another number of memories.
 */
export function withMemoryLimit(module: Uint8Array, bytes: number): Uint8Array {
  for (let at = 8; at < module.length;) {
    const id = module[at]!;
    const size = unsigned(module, at + 1);
    const end = size.next + size.value;
    if (id !== MEMORY_SECTION) {
      at = end;
      continue;
    }
    const count = unsigned(module, size.next);
    const initial = unsigned(module, count.next + 1);
    const maximum = Math.floor(bytes / PAGE);
    if (count.value !== 1) throw new Error(`the module has ${count.value} memories, not one`);
    if (initial.value > maximum) {
      throw new Error(
        `the module needs ${initial.value * PAGE} bytes of memory to begin with, and has ${bytes}`,
      );
    }
    const body = [1, HAS_MAXIMUM, ...encoded(initial.value), ...encoded(maximum)];
    return Buffer.concat([
      module.subarray(0, at),
      Buffer.from([MEMORY_SECTION, ...encoded(body.length), ...body]),
      module.subarray(end),
    ]);
  }
  throw new Error('the module has no memory of its own');
}

/** LEB128 */
function unsigned(from: Uint8Array, at: number): { value: number; next: number } {
  let value = 0;
  for (let shift = 0; ; shift += 7) {
    const byte = from[at++]!;
    value += (byte & 0x7f) * 2 ** shift;
    if (byte < 0x80) return { value, next: at };
  }
}

function encoded(value: number): number[] {
  const rest = Math.floor(value / 128);
  return rest === 0 ? [value] : [(value % 128) | 0x80, ...encoded(rest)];
}
