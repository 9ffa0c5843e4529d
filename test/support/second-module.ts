import { calculatorEnvironment } from '../../environments/families/calculator/environment.ts';

// A module beside others: its environment says which process it runs in.

export default {
  ...calculatorEnvironment('second'),
  task: () => ({ prompt: String(process.pid) }),
};
