const MONTHS = [
  'January',
  'February',
  'March',
  'April',
  'May',
  'June',
  'July',
  'August',
  'September',
  'October',
  'November',
  'December',
];
const DAYS = ['Sunday', 'Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday'];

/**
 * Midnight of a day, `YYYY-MM-DD`, as Python's `strftime` prints it in the C locale.
 * Throws Error for a directive that it does not know.
 */
export function strftime(date: string, format: string): string {
  const day = new Date(`${date}T00:00:00Z`);
  const two = (n: number): string => String(n).padStart(2, '0');
  const year = day.getUTCFullYear();
  const dayOfYear = Math.round((day.getTime() - Date.UTC(year, 0, 1)) / 86_400_000) + 1;
  const directives: Record<string, string> = {
    '%': '%',
    a: DAYS[day.getUTCDay()]!.slice(0, 3),
    A: DAYS[day.getUTCDay()]!,
    b: MONTHS[day.getUTCMonth()]!.slice(0, 3),
    B: MONTHS[day.getUTCMonth()]!,
    d: two(day.getUTCDate()),
    '-d': String(day.getUTCDate()),
    m: two(day.getUTCMonth() + 1),
    '-m': String(day.getUTCMonth() + 1),
    y: two(year % 100),
    Y: String(year),
    j: String(dayOfYear).padStart(3, '0'),
    w: String(day.getUTCDay()),
    F: date,
    H: '00',
    I: '12',
    M: '00',
    S: '00',
    f: '000000',
    p: 'AM',
    T: '00:00:00',
  };
  return format.replace(/%(-?.)/gsu, (whole, directive: string) => {
    const text = directives[directive];
    if (text === undefined) throw new Error(`strftime_now does not know ${whole}`);
    return text;
  });
}
