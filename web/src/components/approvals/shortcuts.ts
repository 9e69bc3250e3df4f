import { useHotkeys } from "@mantine/hooks";
import type { HotkeyItem } from "@mantine/hooks";

/** The keys of the approvals page. Those that decide only bring to the button; Enter presses it. */
export const shortcuts = ["j", "k", "a", "r", "c", "x", "?"] as const;
export type Shortcut = (typeof shortcuts)[number];

/** Whether the letters belong to a text. A box that was just ticked is no text. */
function isTyping(target: EventTarget | null): boolean {
  if (target instanceof HTMLInputElement) return target.type !== "checkbox" && target.type !== "radio";
  return target instanceof HTMLTextAreaElement || target instanceof HTMLSelectElement;
}

export function useShortcuts(actions: Record<Shortcut, () => void>, enabled: boolean) {
  const press = (key: Shortcut) => (event: KeyboardEvent) => {
    if (!enabled || isTyping(event.target)) return;
    event.preventDefault();
    actions[key]();
  };
  // The default would swallow letters before anybody asked whose they are.
  const own = { preventDefault: false };
  useHotkeys([...shortcuts.map((key): HotkeyItem => [key, press(key), own]), ["shift+?", press("?"), own]], []);
}

/** Brings the keyboard to the first of these that is there. */
export function focusFirst(within: string, ...testIds: string[]) {
  for (const testId of testIds) {
    const found = document.querySelector<HTMLElement>(`#${within} [data-testid="${testId}"]`);
    if (found) {
      found.focus();
      return;
    }
  }
}
