import type { Duplex } from 'node:stream';

// A worker and its host talk by lines of JSON over a socket of their own. Node's own channel between processes is not
// for users' code: `process.send` would be there for any library that says to whoever started it that it is ready, and
// what is no JSON at its descriptor is an exception that nobody in the worker can catch.

/** Longest line, in characters: longer ones are no messages of a host. */
const LONGEST_LINE = 2 ** 28;

export interface Heard {
  message: (value: unknown) => void;
  /** What comes is no message; nothing is heard after it. */
  nonsense: (why: string) => void;
  /** The other side can say nothing any more: it has ended, or closed its end. */
  ended?: () => void;
}

export class Channel {
  private readonly socket: Duplex;

  /** Lines that do not begin with `mark` are none of the other side's. */
  constructor(
    socket: Duplex,
    { message, nonsense, ended }: Heard,
    { longestLine = LONGEST_LINE, mark = '' } = {},
  ) {
    this.socket = socket;
    let line: string[] = [];
    let length = 0;
    let broken = false;
    const fail = (why: string): void => {
      broken = true;
      line = [];
      nonsense(why);
    };
    const read = (text: string): void => {
      if (!text.startsWith(mark)) return fail('sent what is none of its own messages');
      let value: unknown;
      try {
        value = parsed(text.slice(mark.length));
      } catch {
        return fail('sent what is no JSON');
      }
      message(value);
    };
    socket.setEncoding('utf8');
    socket.on('data', (text: string) => {
      const pieces = text.split('\n');
      for (const [i, piece] of pieces.entries()) {
        if (broken) return;
        if (i > 0) {
          const whole = line.join('');
          line = [];
          length = 0;
          read(whole);
        }
        line.push(piece);
        length += piece.length;
        if (length > longestLine) fail(`sent more than ${longestLine} characters at once`);
      }
    });
    socket.on('error', () => undefined); // Its end tells.
    socket.once('close', () => ended?.());
  }

  /** `text`: a message as JSON. Nothing is said to one that is gone. */
  say(text: string): void {
    if (this.socket.writable) this.socket.write(`${text}\n`);
  }
}

/** A key `__proto__` would become a prototype where what came is copied, and no answer has one. */
const HAS_PROTO = /"(?:_|\\u005f){2}proto(?:_|\\u005f){2}"\s*:/iu;

const parsed = (text: string): unknown =>
  HAS_PROTO.test(text)
    ? JSON.parse(text, (key, value: unknown) => (key === '__proto__' ? undefined : value))
    : JSON.parse(text);
