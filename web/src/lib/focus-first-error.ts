/** marks matches fields that Mantine marks as wrong: inputs by ARIA; groups of radios or boxes only by the message below them. */
const marks = '[aria-invalid="true"], .mantine-InputWrapper-error';
const inputs = "input:not([type=hidden], :disabled), textarea:not(:disabled), select:not(:disabled)";

/** focusFirstField lets a dialog's focus trap begin at the first field below `container`, unless an element has the focus attribute already. */
export function focusFirstField(container: HTMLElement): void {
  if (!container.querySelector("[data-autofocus]")) container.querySelector(inputs)?.setAttribute("data-autofocus", "true");
}

/** focusFirstError moves the focus to the first field below `container` that shows an error. It returns whether there is one. */
export function focusFirstError(container: HTMLElement | null): boolean {
  const mark = container?.querySelector<HTMLElement>(marks);
  if (!mark) return false;
  const group = mark.closest(".mantine-InputWrapper-root") ?? mark;
  const field = mark.matches(inputs) ? mark : (group.querySelector<HTMLElement>("input:checked") ?? group.querySelector<HTMLElement>(inputs));
  field?.focus();
  return field !== null;
}
