import { readFileSync } from 'node:fs';
import path from 'node:path';
import { defineConfig } from 'vitepress';
import { pageOf, ROOT } from '../pages.mjs';

// How the pages that write-pages.mjs writes are found and shown. A link to nothing fails the build.

const titleOf = (file) =>
  /^# (.+)$/m.exec(readFileSync(path.join(ROOT, file), 'utf8'))[1].replaceAll('`', '');
const page = (file, text = titleOf(file)) => ({ text, link: pageOf(file) });
/** The pages that an index page names, in its order. */
const linked = (index, pattern) =>
  Array.from(readFileSync(path.join(ROOT, index), 'utf8').matchAll(pattern), ([, name]) => name);
const recipes = linked('docs/recipes.md', /\]\(\.\.\/(recipes\/[^)/]+\/README\.md)\)/g);
const decisions = linked('docs/adr/README.md', /\]\((\d{4}-[^)]+\.md)\)/g);

export default defineConfig({
  srcDir: '.pages',
  outDir: 'dist',
  title: 'Gradus',
  description:
    'Trains tool-using language-model agents by reinforcement learning, as durable Temporal workflows.',
  cleanUrls: true,
  themeConfig: {
    nav: [
      page('README.md', 'Start'),
      page('docs/recipes.md', 'Recipes'),
      page('docs/methods.md', 'Methods'),
      page('docs/spec.md', 'Spec'),
      page('docs/log.md', 'Log'),
    ],
    sidebar: [
      {
        text: 'Train',
        items: [
          page('README.md', 'Start'),
          page('docs/methods.md'),
          page('docs/rewards.md'),
          page('docs/families.md'),
          page('docs/evaluation.md'),
          page('docs/models.md'),
        ],
      },
      { text: 'Recipes', items: [page('docs/recipes.md'), ...recipes.map((file) => page(file))] },
      {
        text: 'Bring your own',
        items: ['guide', 'environments', 'agents', 'serving', 'extend', 'learner-contract'].map((one) =>
          page(`docs/${one}.md`),
        ),
      },
      {
        text: 'Run',
        items: ['operations', 'settings', 'dashboard', 'diagnosis', 'ladder'].map((one) =>
          page(`docs/${one}.md`),
        ),
      },
      {
        text: 'Look up',
        items: ['spec', 'json-output', 'batch', 'learner-performance', 'log'].map((one) =>
          page(`docs/${one}.md`),
        ),
      },
      {
        text: 'Carry on',
        items: [page('CONTRIBUTING.md'), page('docs/architecture.md')],
      },
      {
        text: 'Decisions',
        collapsed: true,
        items: [
          page('docs/adr/README.md', 'All decisions'),
          ...decisions.map((file) => page(`docs/adr/${file}`)),
        ],
      },
    ],
    outline: [2, 3],
    search: { provider: 'local' },
  },
});
