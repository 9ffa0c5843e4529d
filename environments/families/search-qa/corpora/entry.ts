/** What a corpus has under one head: a passage to search, and the facts that stand in it. */
export interface Entry {
  /** The most usual name first. */
  names: readonly string[];
  text: string;
  facts: readonly Fact[];
}

/** What the entry is about stands in a relation to what its text calls `mention`. */
export interface Fact {
  relation: string;
  mention: string;
  /** The words of the text that say so. */
  evidence: string;
  /** The entry that the mention refers to, by its place in the corpus; undefined where there is none. */
  to?: number | undefined;
}

/** What is read of a corpus: its entries, and how each relation is put in a question, between a name and `A`. */
export interface Corpus {
  entries: readonly Entry[];
  said: Readonly<Record<string, string>>;
}
