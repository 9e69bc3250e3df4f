import { useMemo, useState } from "react";
import { useLocation } from "react-router";
import { useMe } from "../api/queries";
import { clearDialogDraft, loadDialogDraft, saveDialogDraft } from "./dialog-draft";

/** KeptInput is what FormDialog needs to keep its values while the person logs in. */
export interface KeptInput {
  /** restored reports whether the dialog was opened with values from before a login. */
  restored: boolean;
  save: (values: unknown) => void;
  /** discard removes what was stored, for dialogs that show the answer to a request before they are closed. */
  discard: () => void;
}

/**
 * useKeptDialog returns the state of a dialog whose input is kept while the person logs in. After the login the dialog is open again, and `draft` contains
 * its values. `close` removes what was stored.
 */
export function useKeptDialog<T>(dialog: string, isValues: (value: unknown) => value is T) {
  const person = useMe().data?.person.id;
  const { pathname, search } = useLocation();
  const address = pathname + search;
  // Until the person opens or closes the dialog, it is open if there is stored input.
  const [opened, setOpened] = useState<boolean>();
  const stored = useMemo(() => (person === undefined ? undefined : loadDialogDraft({ person, dialog, address }, isValues)), [person, dialog, address, isValues]);
  const draft = opened === undefined ? stored : undefined;
  const kept: KeptInput = {
    restored: draft !== undefined,
    save: (values) => {
      if (person !== undefined) saveDialogDraft({ person, dialog, address }, values, Date.now());
    },
    discard: clearDialogDraft,
  };
  return {
    opened: opened ?? stored !== undefined,
    draft,
    kept,
    open: () => setOpened(true),
    close: () => {
      clearDialogDraft();
      setOpened(false);
    },
  };
}
