import { raw } from 'hono/html';
import type { Child, FC } from 'hono/jsx';
import { asset } from './assets.ts';
import { Time } from './parts/numbers.tsx';
import { Text } from './parts/text.tsx';

/** Something that a page was made from and that is away: since when what is shown is not the newest. */
export interface Stale {
  /** `Temporal`, `the store`. */
  source: string;
  problem: string;
  /** Epoch milliseconds of what is shown of it; null where there is nothing. */
  asOf: number | null;
}

export interface Crumb {
  href: string;
  label: string;
}

interface LayoutProps {
  title: string;
  /** The way here, from the outermost; the page itself comes last by its title. */
  crumbs?: readonly Crumb[];
  /** Pages before and after this one, for the keys [ and ]. */
  prev?: string | null;
  next?: string | null;
  stale?: readonly Stale[];
  /** Why the page itself is not there; whoever follows the page that would be there is told so, too. */
  problem?: string | null;
  /** Seconds after which the browser asks for the page again, with scripts or without. */
  again?: number | null;
  /** The page follows what it shows while it is open. */
  live?: boolean;
  children?: Child;
}

const SECTIONS = [
  ['/', 'Runs'],
  ['/find', 'Find'],
  ['/compare', 'Compare'],
  ['/reviews', 'Reviews'],
  ['/operations', 'Operations'],
] as const;

/** A whole page. */
export const Layout: FC<LayoutProps> = ({
  title,
  crumbs = [],
  prev = null,
  next = null,
  stale = [],
  problem: itself = null,
  again = null,
  live = false,
  children,
}) => (
  <>
    {raw('<!doctype html>')}
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="color-scheme" content="light dark" />
        {again !== null && <meta http-equiv="refresh" content={String(again)} />}
        <title>{title} – Gradus</title>
        <link rel="icon" href={asset('icon.svg')} type="image/svg+xml" />
        <link rel="stylesheet" href={asset('style.css')} />
        <script type="module" src={asset('moves.js')} />
        {live && <script type="module" src={asset('live.js')} />}
      </head>
      <body>
        <a class="skip" href="#main">
          Skip to the page
        </a>
        <header>
          <a class="brand" href="/">
            Gradus
          </a>
          <nav aria-label="Sections">
            <ul>
              {SECTIONS.map(([href, label]) => (
                <li>
                  <a href={href}>{label}</a>
                </li>
              ))}
            </ul>
          </nav>
        </header>
        <main id="main">
          {crumbs.length > 0 && (
            <nav aria-label="Way here" class="crumbs">
              {crumbs.map(({ href, label }) => (
                <>
                  <a href={href}>
                    <Text value={label} max={80} />
                  </a>{' '}
                  <span aria-hidden="true">›</span>{' '}
                </>
              ))}
            </nav>
          )}
          <div class="heading">
            <h1>
              <Text value={title} max={200} />
            </h1>
            {(prev !== null || next !== null) && (
              <p class="turn">
                {prev !== null && (
                  <a rel="prev" href={prev}>
                    previous
                  </a>
                )}{' '}
                {next !== null && (
                  <a rel="next" href={next}>
                    next
                  </a>
                )}
              </p>
            )}
          </div>
          <Live id="stale">
            {itself !== null && (
              <p class="stale" role="alert">
                <Text value={itself} />
              </p>
            )}
            {stale.map(({ source, problem, asOf }) => (
              <p class="stale" role="status">
                {!problem.startsWith(`${source} does not answer`) && `${source} does not answer: `}
                <Text value={problem} max={500} />
                {problem.endsWith('.') ? ' ' : '. '}
                {asOf === null ? (
                  'Facts that only it has are not shown.'
                ) : (
                  <>
                    Its facts here are as of <Time at={asOf} /> UTC.
                  </>
                )}
              </p>
            ))}
          </Live>
          {children}
        </main>
        <footer>
          <p id="followed" role="status" />
          <p>
            <kbd>j</kbd> <kbd>k</kbd> through what is listed · <kbd>[</kbd> <kbd>]</kbd> to the page before
            and after · as of <Time at={Date.now()} /> UTC
          </p>
        </footer>
      </body>
    </html>
  </>
);

/** A part of a page that is replaced while somebody looks, unless they are at work in it. */
export const Live: FC<{ id: string; children?: Child }> = ({ id, children }) => (
  <div data-live={id}>{children}</div>
);
