// What pip says while it installs, for a person who waits.

/** Names that a file of requirements pins; of one without pins nobody knows how many packages there will be. */
export function packagesIn(requirements: string): number {
  return requirements.match(/^[a-z0-9][\w.-]*(\[.*\])? *==/gimu)?.length ?? 0;
}

/** Makes of a line of pip what is worth saying; null for the rest. Packages that pinned ones need may come on top of them. */
export function pipProgress(packages: number): (line: string) => string | null {
  let begun = 0;
  return (line) => {
    const [, name] = /^Collecting (\S+)/u.exec(line) ?? [];
    if (name !== undefined) {
      const known = ++begun <= packages;
      return `package ${begun}${known ? ` of ${packages}` : ''}: ${name}`;
    }
    const [, built] = /^ +Building wheel for (\S+).*: started/u.exec(line) ?? [];
    if (built !== undefined) return `building ${built}`;
    if (/^ +Downloading .*\(/u.test(line)) return line.trim();
    const [, all] = /^Installing collected packages: (.*)/u.exec(line) ?? [];
    return all === undefined ? null : `unpacking ${all.split(', ').length} packages`;
  };
}
