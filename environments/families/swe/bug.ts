import type { Tree } from './tree.ts';

/** How tests are run: by pytest, or by calling the functions `test_…` of a file, in a fiftieth of the time. */
type TestStyle = 'pytest' | 'plain';

/** A tree with a bug, and what tells whether it was mended. */
export interface Bug {
  /** The tree as the policy is given it: the bug in it, the tests with it, and no history. */
  tree: Tree;
  /** The patch that takes the bug out. */
  mend: string;
  /** Folders, relative to the root, that Python imports from: `''` is the root. */
  sourceRoots: readonly string[];
  /** Folders and files of which a patch counts; whatever else it changes (tests, configuration) is left out when it is judged. */
  sources: readonly string[];
  /** Folders of tests and of what helps them; nothing in them counts, also where they lie among the sources. */
  tests: readonly string[];
  style: TestStyle;
  /** Processor time that the tests may take; whole seconds. */
  cpuSeconds: number;
  /** Files of tests, as they stand in the tree. */
  testFiles: readonly string[];
  /** Tests (`file::name`) that fail because of the bug, and pass without it. */
  failToPass: readonly string[];
  /** Tests that pass with the bug and without it. */
  passToPass: readonly string[];
  /** Tests that need not share a process with the code: they say the same of it across the line (python/apart). */
  apart: readonly string[];
  /** The files of tests as a patch with this digest is judged by them, with inputs that are drawn by it; left out where they are those of the tree. */
  drawn?(patch: string): Tree;
  /** Tests of which a canary is known to fail without the bug (python/canaries.py). */
  canaries: readonly string[];
}
