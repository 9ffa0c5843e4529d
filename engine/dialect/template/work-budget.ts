import type { TemplateValue } from './python-json.ts';

/** Units that a template may spend beyond what its input allows: the largest of the conversations in test/fixtures spends 1,100. */
const LEAST_WORK = 400_000;
/** Units for each letter of the conversation and the tools: it may be read more than a hundred times. */
const WORK_PER_LETTER = 8;
/** Letters that one text may have. */
const LEAST_TEXT = 1_000_000;
const TEXT_PER_LETTER = 8;

/**
 * What a template may do to a conversation of some letters: so many units of work, each about a microsecond or sixteen letters read
 * or written, and texts of so many letters. Everything that it makes is paid for, so the units bound its memory too.
 */
export class WorkBudget {
  readonly sourceLength: number;
  private readonly most: number;
  private readonly longest: number;
  private spent = 0;

  /** Letters of the template, and of what it is given. */
  constructor(sourceLength: number, inputLength: number) {
    this.sourceLength = sourceLength;
    this.most = LEAST_WORK + WORK_PER_LETTER * inputLength;
    this.longest = LEAST_TEXT + TEXT_PER_LETTER * inputLength;
  }

  /** Throws Error when nothing is left. */
  spend(units: number): void {
    this.spent += units;
    if (!(this.spent <= this.most)) {
      throw new Error(
        `it does more than ${Math.round(this.most)} units of work for this conversation, where an ordinary template does some thousands: it loops too often, or makes too much text`,
      );
    }
  }

  /** Throws Error for a text that is too long to be made. */
  hold(letters: number): void {
    if (!(letters <= this.longest)) {
      throw new Error(`it makes a text of more than ${this.longest} letters of this conversation`);
    }
  }

  /** The nodes and the letters / 16 of a value with everything in it, which is paid for. */
  weigh(value: TemplateValue): { weight: number; depth: number } {
    let weight = 1;
    let depth = 0;
    const add = (part: TemplateValue): void => {
      const inner = this.weigh(part);
      weight += inner.weight;
      depth = Math.max(depth, inner.depth);
    };
    if (typeof value.value === 'string') weight += value.value.length / 16;
    this.spend(weight);
    if (Array.isArray(value.value)) for (const item of value.value as TemplateValue[]) add(item);
    else if (value.value instanceof Map) {
      for (const [key, member] of value.value as Map<string, TemplateValue>) {
        weight += key.length / 16;
        add(member);
      }
    }
    return { weight, depth: depth + 1 };
  }
}
