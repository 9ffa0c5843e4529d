/** With so many decimals, as `toFixed`, but without the sign of what is rounded to nothing: `0.000`, not `-0.000`. */
export const decimals = (value: number, digits: number): string => {
  const text = value.toFixed(digits);
  return /^-0(\.0*)?$/.test(text) ? text.slice(1) : text;
};
