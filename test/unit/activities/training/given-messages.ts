/** Messages of an episode with the tool of the test's environment, in OpenAI's shape. */
export const user = { role: 'user', content: 'Find 0' };
export const call = {
  role: 'assistant',
  content: '',
  tool_calls: [{ function: { name: 'search', arguments: '{"query":"moon"}' } }],
};
export const result = { role: 'tool', content: 'it is far' };
