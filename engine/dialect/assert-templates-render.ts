import { chatTemplateOf, namedSpecialTokens } from './checkpoint-dialect.ts';
import type { TokenizerConfig } from './checkpoint-dialect.ts';
import { ChatTemplate } from './template/chat-template.ts';

/**
 * Renders the shortest conversation with each chat template of a model, as every dialect but `gradus` does with one of them.
 * Throws GradusError('policy', 'chat-template') for one that cannot be read, or refuses the conversation.
 */
export function assertTemplatesRender(config: TokenizerConfig): void {
  const named = namedSpecialTokens(config);
  const templates = new Set([chatTemplateOf(config, false), chatTemplateOf(config, true)]);
  for (const [i, source] of [...templates].entries()) {
    if (source === undefined) continue;
    // The second one is for tools alone.
    const tools =
      i === 0 ? [] : [{ name: 'tool', description: '', parameters: { type: 'object', properties: {} } }];
    new ChatTemplate(source, named).render({
      messages: [{ role: 'user', content: 'task' }],
      tools,
      addGenerationPrompt: true,
    });
  }
}
