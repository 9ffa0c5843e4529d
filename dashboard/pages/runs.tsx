import type { App, Context } from '../context.ts';
import { Layout } from '../layout.tsx';
import { Text } from '../parts/text.tsx';

export function runsPage(app: App, { sources }: Context): void {
  app.get('/', async (c) => {
    const { folders } = await sources.store.listFolder('runs/');
    const names = folders.map((folder) => folder.slice('runs/'.length, -1));
    return c.html(
      <Layout title="Runs">
        <ul>
          {names.map((name) => (
            <li data-item>
              <a href={`/runs/${encodeURIComponent(name)}`}>
                <Text value={name} />
              </a>
            </li>
          ))}
        </ul>
      </Layout>,
    );
  });
}
