/** A share as people read it, such as 12.5 %. */
export const percent = (share: number): string => `${(100 * share).toFixed(1)} %`;
