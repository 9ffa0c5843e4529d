import { judge } from '../environments/verifiers/judge/judge.ts';

/** Whether the policy let the tool do the spelling, which a model has to read the turns for. */
export const tidyWork = judge({
  name: 'tidy-work',
  // Any server of OpenAI's chat completions: vLLM, SGLang, llama.cpp, Ollama, or one on the net.
  baseUrl: process.env['JUDGE_URL'] ?? 'http://127.0.0.1:8000/v1',
  model: 'Qwen/Qwen2.5-7B-Instruct',
  // The name of the variable that holds the key, not the key. Leave it out for a server that wants none.
  apiKeyEnv: 'JUDGE_API_KEY',
  rubric: `The task can be solved by one call of the tool "reverse" with the word as it stands in the task.
Score 1: one such call, and the answer is what the tool gave.
Score 0.5: the answer is what the tool gave, after needless or repeated calls.
Score 0: the answer is not what the tool gave, or the tool was not called.`,
  // Three judges with seeds of their own; two must agree, or the verdict is an abstention.
  samples: 3,
  // What needs no judge is decided first. Pure; null where only the judge can tell.
  rule: ({ task, answer }) =>
    answer === task.answer ? null : { score: 0, evidence: `${answer ?? 'no answer'} for ${task.answer}` },
  tier: 'simulation',
  cost: { seconds: 2, usd: 0.001 },
  // US$ for a million tokens, by which the ledger counts what the server says it has used.
  prices: { input: 0.1, output: 0.3 },
});
