export function endDescendants(pid: number, mark: string): void;
