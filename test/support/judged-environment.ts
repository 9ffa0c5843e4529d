import environment from '../../examples/environment.ts';
import { tidyWork } from '../../examples/judge.ts';

// The example environment with the example judge, as a user would put them together.
export default {
  ...environment,
  name: 'backwards-judged',
  verifiers: [...environment.verifiers, tidyWork],
};
