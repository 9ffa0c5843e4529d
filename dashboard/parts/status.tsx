import type { FC } from 'hono/jsx';
import { concernText } from '../../runs/overview/concerns.ts';
import type { Concern } from '../../runs/overview/concerns.ts';
import { Text } from './text.tsx';

/** What a run is at, or ended as; with what speaks against it, it has no healthy colour. */
export const Status: FC<{ status: string; concerns: readonly Concern[] }> = ({ status, concerns }) => (
  <>
    <span class={`status ${status.replaceAll(' ', '-')}${concerns.length > 0 ? ' concerned' : ''}`}>
      {status}
    </span>
    {concerns.map((concern) => (
      <div class="warn">
        <Text value={concernText(concern)} max={200} />
      </div>
    ))}
  </>
);
