import { Readable } from 'node:stream';
import type { Context as Request } from 'hono';
import type { FC } from 'hono/jsx';
import { createTarPacker } from 'modern-tar';
import type { Findings } from '../../../runs/find/find.ts';
import { countText } from '../../parts/numbers.tsx';
import type { FindRequest } from './asked.ts';
import { linkTo } from './asked.ts';

export function download(c: Request, from: Readable, type: string, name: string): Response {
  c.header('Content-Type', type);
  c.header('Content-Disposition', `attachment; filename="${name}"`);
  return c.body(Readable.toWeb(from) as ReadableStream);
}

export async function* tarOf(
  files: AsyncIterable<{ name: string; text: string }>,
): AsyncGenerator<Uint8Array> {
  const { readable, controller } = createTarPacker();
  const pack = async (): Promise<void> => {
    for await (const { name, text } of files) {
      const bytes = new TextEncoder().encode(text);
      const writer = controller.add({ name, size: bytes.length }).getWriter();
      await writer.write(bytes);
      await writer.close();
    }
    controller.finalize();
  };
  const packed = pack().catch((error: unknown) => controller.error(error));
  yield* readable as unknown as AsyncIterable<Uint8Array>;
  await packed;
}

export const Exports: FC<{ asked: FindRequest; findings: Findings }> = ({ asked, findings: { total } }) => {
  const { text, ...query } = asked.query;
  if (total === 0) return null;
  const to = (kind: string): string => linkTo(`/find/episodes.${kind}`, { ...asked, query });
  return (
    <>
      <h2>As files</h2>
      <p>
        All {countText(total)}
        {text !== undefined && ', whatever text they have'}: <a href={to('parquet')}>Parquet</a> (a row of
        numbers each), <a href={to('jsonl')}>JSONL</a> (conversations in the form of OpenAI’s API),{' '}
        <a href={to('atif.tar')}>ATIF</a> (a trajectory each, with tokens and log-probs).
      </p>
    </>
  );
};
