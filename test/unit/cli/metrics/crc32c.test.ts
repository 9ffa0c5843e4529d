import { expect, test } from 'vitest';
import { crc32c, maskedCrc32c } from '../../../../cli/metrics/crc32c.ts';

// RFC 3720, appendix B.4.
test.each([
  ['32 bytes of zero', new Uint8Array(32), 0x8a9136aa],
  ['32 bytes of one', new Uint8Array(32).fill(0xff), 0x62a8ab43],
  ['32 bytes that count up', Uint8Array.from({ length: 32 }, (_, i) => i), 0x46dd794e],
])('the checksum of %s is that of the standard', (_, bytes, expected) => {
  expect(crc32c(bytes)).toBe(expected);
});

test('a masked checksum is rotated and moved, as TFRecords have it', () => {
  const bytes = new TextEncoder().encode('123456789');
  const crc = 0xe3069283;
  const rotated = ((crc >>> 15) | (crc << 17)) >>> 0;
  expect(maskedCrc32c(bytes)).toBe((rotated + 0xa282ead8) % 2 ** 32);
});
