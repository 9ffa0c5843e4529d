import { readFileSync } from 'node:fs';
import path from 'node:path';
import { historyFromJSON } from '@temporalio/common/lib/proto-utils.js';
import type { ExecutionHistory } from '../../runs/temporal/history.ts';

const ROOT = path.join(import.meta.dirname, '..');

/** A history that was recorded, by its file below test/. */
export function recordedHistory(file: string, workflowId: string): ExecutionHistory {
  const json = JSON.parse(readFileSync(path.join(ROOT, file), 'utf8')) as unknown;
  const events = historyFromJSON(json).events ?? [];
  return { workflowId, runId: `run of ${workflowId}`, events, whole: true, pending: [], running: false };
}
