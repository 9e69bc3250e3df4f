import { useHotkeys } from "@mantine/hooks";
import type { HotkeyItem } from "@mantine/hooks";

/** shortcuts contains the keys of the approvals page. The keys for decisions only focus the button; Enter presses it. */
export const shortcuts = ["j", "k", "a", "r", "c", "x", "?"] as const;
/** Shortcut is one of the keys of the approvals page. */
export type Shortcut = (typeof shortcuts)[number];

/** isTyping reports whether the focused element takes text. A checkbox does not. */
function isTyping(target: EventTarget | null): boolean {
  if (target instanceof HTMLInputElement) return target.type !== "checkbox" && target.type !== "radio";
  return target instanceof HTMLTextAreaElement || target instanceof HTMLSelectElement;
}

/** useShortcuts calls the action of a key when it is pressed, unless the person is typing or the shortcuts are disabled. */
export function useShortcuts(actions: Record<Shortcut, () => void>, enabled: boolean) {
  const press = (key: Shortcut) => (event: KeyboardEvent) => {
    if (!enabled || isTyping(event.target)) return;
    event.preventDefault();
    actions[key]();
  };
  // The default would ignore keys in more elements than those that take text.
  const own = { preventDefault: false };
  useHotkeys([...shortcuts.map((key): HotkeyItem => [key, press(key), own]), ["shift+?", press("?"), own]], []);
}

/** focusFirst moves the focus to the first of these elements that exists within the element with the id `within`. */
export function focusFirst(within: string, ...testIds: string[]) {
  for (const testId of testIds) {
    const found = document.querySelector<HTMLElement>(`#${within} [data-testid="${testId}"]`);
    if (found) {
      found.focus();
      return;
    }
  }
}
