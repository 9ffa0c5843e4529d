import { bundleWorkflowCode, DefaultLogger } from '@temporalio/worker';
import { messageOf } from '../core/errors.ts';
import { ownModule } from '../engine/own-module.ts';
import type { Made } from './workflow-bundle.ts';

// Makes the workflows' script, says it to the worker that has started this process, and ends.

const say = (made: Made): void => void process.send?.(made, () => process.exit());
process.once('disconnect', () => process.exit());

bundleWorkflowCode({
  workflowsPath: ownModule('../workflows/index', import.meta.url),
  payloadConverterPath: ownModule('../workflows/payload-converter', import.meta.url),
  logger: new DefaultLogger('WARN'),
}).then(
  ({ code }) => say({ code }),
  (error: unknown) => say({ failed: messageOf(error) }),
);
