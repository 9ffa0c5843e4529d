import type { FC } from 'hono/jsx';
import type { Context } from '../context.ts';
import { Text } from './text.tsx';

interface Props {
  context: Pick<Context, 'temporalUi' | 'namespace'>;
  workflowId: string;
  /** Absent: its newest execution. */
  runId?: string;
}

/** A workflow's own page of Temporal's, where that is known; else its id alone. */
export const WorkflowLink: FC<Props> = ({ context: { temporalUi, namespace }, workflowId, runId }) => {
  const name = <Text value={workflowId} max={200} />;
  if (temporalUi === null) return <code>{name}</code>;
  const parts = [
    'namespaces',
    namespace,
    'workflows',
    workflowId,
    ...(runId === undefined ? [] : [runId, 'history']),
  ];
  return <a href={`${temporalUi.replace(/\/$/, '')}/${parts.map(encodeURIComponent).join('/')}`}>{name}</a>;
};
