import { GradusError } from '../../core/errors.ts';
import type { App, Context } from '../context.ts';

/** Of an image that an environment drew: it is none of ours, and even where somebody opens it alone it does nothing. */
const POLICY = "default-src 'none'; style-src 'unsafe-inline'; sandbox";

/** `/drawings/KEY/N`: a drawing of a subject, as an image of its own. */
export function drawingsPage(app: App, { presenter }: Context): void {
  app.get('/drawings/:key/:block', (c) => {
    const svg = presenter.drawing(c.req.param('key'), Number(c.req.param('block')));
    if (svg === null) {
      throw new GradusError(
        'environment',
        'no-drawing',
        'this drawing is not there any more: load the page again that had it',
      );
    }
    c.header('Content-Type', 'image/svg+xml');
    c.header('Content-Security-Policy', POLICY);
    c.header('X-Content-Type-Options', 'nosniff');
    return c.body(svg);
  });
}
