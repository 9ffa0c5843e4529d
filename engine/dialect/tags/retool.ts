import type { TagConventions } from './tag-dialect.ts';

/**
 * ReTool (Feng et al. 2025, arXiv 2504.11536): code in `<code>`, with or without a Markdown fence, or in a fence alone;
 * its output in `<interpreter>`; the answer in `<answer>`, as `\boxed{…}` where it is a formula.
 */
export const retool: TagConventions = {
  name: 'retool',
  tags: { call: 'code', answer: 'answer', result: 'interpreter', fences: true },
  instructions: ({ description }) =>
    [
      'Solve the task below step by step. You can have code run while you reason:',
      'write it between <code> and </code>, as ```python fenced text.',
      `What runs it: ${description}`,
      'Its output comes back between <interpreter> and </interpreter>, and you go on from there.',
      'At the end write <answer>\\boxed{the answer}</answer>.',
    ].join(' '),
  writeCall: (code) => `\n\`\`\`python\n${code}\n\`\`\`\n`,
  readCall: (content) => {
    const fenced = /^\s*```[^`\n]*\n([\s\S]*?)\n?[ \t]*```\s*$/u.exec(content);
    return (fenced?.[1] ?? content).replace(/^\s*\n/u, '').trimEnd();
  },
  writeAnswer: (answer) => (isBalanced(answer) ? `\\boxed{${answer}}` : answer),
  readAnswer: (content) => (retoolAnswer(content) ?? content).trim(),
};

/** What the last `\boxed{…}` of a text holds, braces inside it paired but for escaped ones; undefined where there is none or it is open. */
export function retoolAnswer(text: string): string | undefined {
  const start = text.lastIndexOf('\\boxed{');
  if (start < 0) return undefined;
  const from = start + '\\boxed{'.length;
  let depth = 1;
  for (let i = from; i < text.length; i++) {
    if (text[i] === '\\') i++;
    else if (text[i] === '{') depth++;
    else if (text[i] === '}' && --depth === 0) return text.slice(from, i);
  }
  return undefined;
}

function isBalanced(text: string): boolean {
  let depth = 0;
  for (let i = 0; i < text.length; i++) {
    if (text[i] === '\\') {
      // At the end it would escape the brace that closes the box.
      if (++i === text.length) return false;
    } else if (text[i] === '{') depth++;
    else if (text[i] === '}' && --depth < 0) return false;
  }
  return depth === 0;
}
