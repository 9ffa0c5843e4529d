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
}

export class Channel {
  private readonly socket: Duplex;

  constructor(socket: Duplex, { message, nonsense }: Heard, longestLine = LONGEST_LINE) {
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
      let value: unknown;
      try {
        value = JSON.parse(text);
      } catch {
        return fail('said what is no JSON');
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
        if (length > longestLine) fail(`said more than ${longestLine} characters at once`);
      }
    });
    // The end of a process is told by its exit, and that of the worker by the lifeline.
    socket.on('error', () => undefined);
  }

  /** `text`: a message as JSON. Nothing is said to one that is gone. */
  say(text: string): void {
    if (this.socket.writable) this.socket.write(`${text}\n`);
  }
}
