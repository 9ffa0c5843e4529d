/** Those who wait are let go one at a time, whoever has waited longest, when all wait. */
export class InTurn {
  private readonly waiting: (() => void)[] = [];
  private players: number;

  constructor(players: number) {
    this.players = players;
  }

  wait(): Promise<void> {
    return new Promise((resolve) => {
      this.waiting.push(resolve);
      this.next();
    });
  }

  leave(): void {
    this.players--;
    this.next();
  }

  private next(): void {
    if (this.waiting.length === this.players) this.waiting.shift()?.();
  }
}
