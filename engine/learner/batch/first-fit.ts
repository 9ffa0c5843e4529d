/**
 * Rows of equal length that are filled from the first on: each piece goes into the first row that has room. The largest room
 * below each node of a binary tree is known, so that a row is found in as many steps as the tree is deep.
 */
export class FirstFit {
  private readonly leaves: number;
  private readonly room: Int32Array;

  /** `rows`: at most as many are used. */
  constructor(rows: number, length: number) {
    this.leaves = 2 ** Math.ceil(Math.log2(Math.max(1, rows)));
    this.room = new Int32Array(2 * this.leaves).fill(length);
  }

  /** The row that a piece of at most a row's length goes into. */
  put(piece: number): number {
    const { leaves, room } = this;
    let node = 1;
    while (node < leaves) node = room[2 * node]! >= piece ? 2 * node : 2 * node + 1;
    const row = node - leaves;
    room[node]! -= piece;
    while (node > 1) {
      node >>= 1;
      room[node] = Math.max(room[2 * node]!, room[2 * node + 1]!);
    }
    return row;
  }
}
