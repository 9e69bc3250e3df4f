/** userCodeOf returns the user code of a device login as the command line shows it, and an empty text if the input cannot be a code. */
export function userCodeOf(text: string): string {
  const letters = text.toUpperCase().replace(/[^A-Z]/g, "");
  return letters.length === 8 ? `${letters.slice(0, 4)}-${letters.slice(4)}` : "";
}
