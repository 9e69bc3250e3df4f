import { useCallback, useEffect, useState } from "react";
import { useSearchParams } from "react-router";
import { loadDraft, saveDraft } from "./draft";

/**
 * useDraft returns the values of a form and a function that changes them. They are restored after a reload or a login, and `restored` reports whether
 * they were.
 */
export function useDraft<T>(person: string, initial: () => T, isForm: (value: unknown) => value is T) {
  const [search] = useSearchParams();
  const at = search.toString();
  const [restored] = useState(() => loadDraft(person, at, isForm));
  const [form, setForm] = useState<T>(() => restored ?? initial());
  const [touched, setTouched] = useState(false);
  // Only typed values are stored; values from a link come again with the link.
  useEffect(() => {
    if (touched) saveDraft({ person, search: at, form });
  }, [touched, person, at, form]);
  const change = useCallback((next: Partial<T>) => {
    setTouched(true);
    setForm((before) => ({ ...before, ...next }));
  }, []);
  return { form, change, restored: restored !== undefined };
}
