import { Button, Group, Modal, Stack, Text } from "@mantine/core";
import { useCallback, useEffect, useId, useRef, useState } from "react";
import type { ReactNode, RefObject } from "react";
import { useTranslation } from "react-i18next";
import { asApiError, fieldName, loginTooOld } from "../api/client";
import type { Problem } from "../api/types";
import { focusFirstError, focusFirstField } from "../lib/focus-first-error";
import { onSessionEnd } from "../lib/session-end";
import type { KeptInput } from "../lib/use-kept-dialog";
import { useReturnFocus } from "../lib/use-return-focus";
import { useWords } from "../lib/use-words";
import { ErrorState, Notice } from "./Feedback";
import classes from "./FormDialog.module.css";

/** FieldError returns the server's message about the first of these fields that it refused. A name is the last part of the field's JSON path. */
export type FieldError = (...names: string[]) => string | undefined;

type FieldProblem = NonNullable<Problem["fields"]>[number];

/** useProblem divides what the server refused into fields that the dialog shows an error at, and the others. */
function useProblem(error: unknown) {
  const words = useWords();
  const fields: FieldProblem[] = (error ? asApiError(error).problem?.fields : undefined) ?? [];
  const shown = new Set<string>();
  const fieldError: FieldError = (...names) => {
    for (const name of names) {
      const found = fields.filter(({ field }) => fieldName(field) === name);
      if (found.length === 0) continue;
      shown.add(name);
      return [...new Set(found.map(({ message }) => words.message(message)))].join(" ");
    }
    return undefined;
  };
  const others = () => fields.filter(({ field }) => !shown.has(fieldName(field)));
  return { fieldError, others, hasFields: fields.length > 0 };
}

/** ProblemState shows the server's problem, and the refused fields whose errors the dialog does not show at a field. */
function ProblemState({ error, fields }: { error: unknown; fields: FieldProblem[] }) {
  const { t } = useTranslation();
  const words = useWords();
  return (
    <>
      <ErrorState error={error} title={t("error.actionTitle")} />
      {fields.length > 0 && (
        <ul className={classes.fields}>
          {fields.map(({ field, message }) => (
            <li key={`${field} ${message.text}`}>
              <code>{field}</code>: {words.message(message)}
            </li>
          ))}
        </ul>
      )}
    </>
  );
}

/** useKeep stores the values while the last request needs a new login, and when the session ends. */
function useKeep(kept: KeptInput | undefined, values: unknown, unsaved: boolean, needsLogin: boolean) {
  const save = useRef<() => void>(() => undefined);
  useEffect(() => {
    save.current = () => {
      if (kept && unsaved) kept.save(values);
    };
    if (needsLogin) save.current();
  });
  useEffect(() => onSessionEnd(() => save.current()), []);
}

/** Loss names what closing the dialog would discard: input that was not sent, or the response to a request that was sent. */
type Loss = "input" | "answer";

interface Action {
  label: string;
  danger?: boolean;
  testId: string;
  /** Sends, and returns true; returns false if nothing was sent because a field is wrong. */
  onSubmit: () => boolean;
}

interface Props {
  title: string;
  size?: "lg" | "xl";
  testId?: string | undefined;
  /** submit is the action of the button, and of Enter in a field. */
  submit: Action & { disabled?: boolean };
  /** Another way to submit the same fields, next to the first. */
  alternative?: Action;
  /** pending reports whether the request was sent and not answered yet. */
  pending: boolean;
  /** The error of the last request. */
  error: unknown;
  /** The values of the fields. The dialog asks before it drops values that differ from those it was opened with. */
  values?: unknown;
  /** Keeps the values while the person logs in, see useKeptDialog. Not for values that contain a secret. */
  kept?: KeptInput;
  /** Focuses Cancel when the dialog opens: for confirmations without fields. */
  focusCancel?: boolean;
  onClose: () => void;
  children: (fieldError: FieldError) => ReactNode;
}

/**
 * FormDialog is a dialog that sends something. It begins at the first field, sends once until the server has answered, shows what the server refused,
 * moves the focus to the first wrong field, and requires a confirmation before Escape, its close button or a click outside discard the input.
 */
export function FormDialog({ title, size, testId, submit, alternative, pending, error, values, kept, focusCancel = false, onClose, children }: Props) {
  const { t } = useTranslation();
  useReturnFocus();
  const form = useRef<HTMLFormElement>(null);
  const attach = useCallback((element: HTMLFormElement | null) => {
    form.current = element;
    if (element) focusFirstField(element);
  }, []);
  const problemArea = useRef<HTMLDivElement>(null);
  const current = JSON.stringify(values);
  // Restored values were not sent, so they count as entered.
  const [initial] = useState(kept?.restored ? undefined : current);
  const unsaved = current !== initial;
  const [question, setQuestion] = useState<Loss>();
  const asked = question === "answer" && !pending ? undefined : question;
  const focusBefore = useRef<Element>(null);
  const [used, setUsed] = useState<"submit" | "alternative">("submit");
  const [refusals, setRefusals] = useState(0);
  // An answer to an earlier attempt is not shown once a later attempt was refused by the dialog itself.
  const [outdated, setOutdated] = useState<unknown>();
  const shownError = error && error !== outdated ? error : undefined;
  const { fieldError, others, hasFields } = useProblem(shownError);
  const content = children(fieldError);
  const otherFields = others();

  // The mutation reports `pending` in a later task. Until then this ref prevents that a second click sends again.
  const sending = useRef(false);
  // Whether the outcome of a submission is still to be shown. Other errors, of a preview for example, must not move the focus.
  const awaited = useRef(false);
  useEffect(() => {
    if (pending || !shownError || !awaited.current) return;
    awaited.current = false;
    if (!focusFirstError(form.current)) problemArea.current?.focus();
  }, [pending, shownError]);
  useEffect(() => {
    if (refusals > 0) focusFirstError(form.current);
  }, [refusals]);

  useKeep(kept, values, unsaved, Boolean(error) && asApiError(error).code === loginTooOld);

  const send = (action: Action, which: typeof used) => {
    if (pending || sending.current || asked || (which === "submit" && submit.disabled)) return;
    setUsed(which);
    setQuestion(undefined);
    if (action.onSubmit()) {
      awaited.current = true;
      sending.current = true;
      setTimeout(() => {
        sending.current = false;
      }, 0);
      return;
    }
    setOutdated(error);
    setRefusals((before) => before + 1);
  };
  // While the question is open, Escape takes it back.
  const close = () => {
    if (!unsaved && !pending) {
      onClose();
      return;
    }
    if (asked === undefined) focusBefore.current = document.activeElement;
    setQuestion(asked ? undefined : pending ? "answer" : "input");
  };

  return (
    <Modal opened onClose={close} {...(size ? { size } : {})} title={<Text fw={620}>{title}</Text>} closeButtonProps={{ "aria-label": t("action.close") }} classNames={{ content: classes.content }}>
      <form
        ref={attach}
        noValidate
        aria-busy={pending}
        onSubmit={(event) => {
          event.preventDefault();
          // React passes events of a dialog on to the form that contains it in the tree of components.
          event.stopPropagation();
          send(submit, "submit");
        }}
        data-testid={testId}
      >
        <Stack gap="md">
          <Stack gap="md" inert={asked !== undefined}>
            {kept?.restored && <Notice live testId="dialog-restored">{t("dialog.restored")}</Notice>}
            {content}
          </Stack>
          {shownError && (!hasFields || otherFields.length > 0) ? (
            <div ref={problemArea} tabIndex={-1} className={classes.problem}>
              <ProblemState error={shownError} fields={otherFields} />
            </div>
          ) : null}
          <div className={classes.footer}>
            {asked ? (
              <DiscardQuestion loss={asked} focusBefore={focusBefore} onKeep={() => setQuestion(undefined)} onDiscard={onClose} />
            ) : (
              <Group justify="flex-end" gap="sm">
                <Button variant="default" onClick={pending ? close : onClose} {...(focusCancel ? { "data-autofocus": true } : {})}>
                  {t("action.cancel")}
                </Button>
                {alternative && (
                  <Button
                    variant="outline"
                    color={alternative.danger ? "red" : "accent"}
                    onClick={() => send(alternative, "alternative")}
                    loading={pending && used === "alternative"}
                    disabled={pending && used !== "alternative"}
                    data-testid={alternative.testId}
                  >
                    {alternative.label}
                  </Button>
                )}
                <Button type="submit" color={submit.danger ? "red" : "accent"} loading={pending && used === "submit"} disabled={submit.disabled === true || (pending && used !== "submit")} data-testid={submit.testId}>
                  {submit.label}
                </Button>
              </Group>
            )}
          </div>
        </Stack>
      </form>
    </Modal>
  );
}

/** DiscardQuestion requires a confirmation to close the dialog if input or the answer of the server would be lost. It focuses the button that keeps both. */
function DiscardQuestion({ loss, focusBefore, onKeep, onDiscard }: { loss: Loss; focusBefore: RefObject<Element | null>; onKeep: () => void; onDiscard: () => void }) {
  const { t } = useTranslation();
  const keep = useRef<HTMLButtonElement>(null);
  const label = useId();
  useEffect(() => {
    const before = focusBefore.current;
    keep.current?.focus();
    return () => {
      if (before instanceof HTMLElement) before.focus();
    };
  }, [focusBefore]);
  return (
    <div role="group" aria-labelledby={label} className={classes.question} data-testid="discard-question">
      <p id={label}>{t(loss === "answer" ? "dialog.pendingText" : "dialog.discardText")}</p>
      <Group justify="flex-end" gap="sm">
        <Button ref={keep} variant="default" onClick={onKeep} data-testid="discard-keep">
          {t(loss === "answer" ? "dialog.wait" : "dialog.keep")}
        </Button>
        <Button color="red" onClick={onDiscard} data-testid="discard-confirm">
          {t(loss === "answer" ? "dialog.close" : "dialog.discard")}
        </Button>
      </Group>
    </div>
  );
}
