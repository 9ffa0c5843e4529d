/** What a family needs that the packages do not bring: a program that does its work when it is loaded. */
export interface SetUp {
  description: string;
  load: () => Promise<unknown>;
}

/** By what `gradus setup NAME` calls them. */
export const SET_UPS: Record<string, SetUp> = {
  corpora: {
    description: 'what search-qa-foldoc and search-qa-python search: 15 MB to download, from Debian',
    load: () => import('./search-qa/corpora/setup.ts'),
  },
  swe: {
    description: 'five packages with their tests, and pytest, for the environment swe: 3 MB to download',
    load: () => import('./swe/packages/setup.ts'),
  },
};
