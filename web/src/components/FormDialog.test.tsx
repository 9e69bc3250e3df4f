import { Chip, Input, TextInput, Textarea } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { act, fireEvent, screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { useState } from "react";
import { afterEach, describe, expect, it, vi } from "vitest";
import { ApiError } from "../api/client";
import type { Problem } from "../api/types";
import { chooseLanguage } from "../i18n";
import { renderPage, verbatim } from "../testing/render";
import { ConfirmDialog } from "./ConfirmDialog";
import { FormDialog } from "./FormDialog";

const refused = (fields: Problem["fields"], detail?: string) =>
  new ApiError("invalid", 400, "invalid", { type: "about:blank", title: "invalid", status: 400, code: "invalid", message: verbatim(detail ?? ""), ...(fields ? { fields } : {}) });

type Send = (form: { name: string; reason: string }) => Promise<unknown>;

/** A dialog with two fields and a group of choices; the group shows the error of `until`. */
function Dialog({ send, end, onClose }: { send: Send; end: Send | undefined; onClose: () => void }) {
  const [name, setName] = useState("");
  const [reason, setReason] = useState("");
  const [tried, setTried] = useState(false);
  const mutation = useMutation({ mutationFn: (action: Send) => action({ name, reason }) });
  const submit = (action: Send) => () => {
    setTried(true);
    if (reason === "") return false;
    mutation.mutate(action, { onSuccess: onClose });
    return true;
  };
  return (
    <FormDialog
      title="Grant it"
      testId="form"
      submit={{ label: "Send", testId: "send", onSubmit: submit(send) }}
      {...(end ? { alternative: { label: "End", danger: true, testId: "end", onSubmit: submit(end) } } : {})}
      pending={mutation.isPending}
      error={mutation.error}
      values={{ name, reason }}
      onClose={onClose}
    >
      {(fieldError) => (
        <>
          <TextInput label="Name" value={name} onChange={(event) => setName(event.currentTarget.value)} error={fieldError("name")} />
          <Input.Wrapper label="End" error={fieldError("until")} labelElement="div">
            <Chip.Group value="day">
              <Chip value="hour">Hour</Chip>
              <Chip value="day">Day</Chip>
            </Chip.Group>
          </Input.Wrapper>
          <Textarea label="Reason" value={reason} onChange={(event) => setReason(event.currentTarget.value)} error={tried && reason === "" ? "Enter a reason." : fieldError("reason")} />
        </>
      )}
    </FormDialog>
  );
}

function start(send: Send = () => Promise.resolve(), end?: Send, opened = true) {
  const closed = vi.fn();
  const outer = vi.fn();
  function Opener() {
    const [open, setOpen] = useState(opened);
    const close = () => {
      closed();
      setOpen(false);
    };
    return (
      <div onSubmit={outer}>
        <button type="button" onClick={() => setOpen(true)}>
          Open
        </button>
        {open && <Dialog send={send} end={end} onClose={close} />}
      </div>
    );
  }
  renderPage(<Opener />, { path: "/", at: "/" });
  return { closed, outer };
}

/** A request that the test answers. */
function pending() {
  const answers: { resolve: () => void; reject: (error: unknown) => void }[] = [];
  const send = vi.fn<Send>(() => new Promise<void>((resolve, reject) => answers.push({ resolve, reject })));
  return { send, answers };
}

const name = () => screen.getByLabelText("Name");
const reason = () => screen.getByLabelText("Reason");

describe("a dialog that sends something", () => {
  it("begins at its first field, and returns the focus to what opened it", async () => {
    const { closed } = start(undefined, undefined, false);
    await userEvent.click(screen.getByText("Open"));
    await waitFor(() => expect(name()).toHaveFocus());
    await userEvent.keyboard("{Escape}");
    expect(closed).toHaveBeenCalledOnce();
    await waitFor(() => expect(screen.getByText("Open")).toHaveFocus());
  });

  it("sends by Enter, once, and does not submit the form that it was opened in", async () => {
    const send = vi.fn<Send>(() => Promise.resolve());
    const { closed, outer } = start(send);
    await userEvent.type(reason(), "Checkout");
    await userEvent.type(name(), "orders{Enter}");
    await waitFor(() => expect(closed).toHaveBeenCalledOnce());
    expect(send.mock.calls).toEqual([[{ name: "orders", reason: "Checkout" }]]);
    expect(outer).not.toHaveBeenCalled();
  });

  it("does not send twice, neither in the same moment nor while it waits for the answer", async () => {
    const { send, answers } = pending();
    start(send);
    await userEvent.type(reason(), "Checkout");
    act(() => {
      fireEvent.submit(screen.getByTestId("form"));
      fireEvent.submit(screen.getByTestId("form"));
    });
    await waitFor(() => expect(screen.getByTestId("form")).toHaveAttribute("aria-busy", "true"));
    expect(screen.getByTestId("send")).toBeDisabled();
    fireEvent.submit(screen.getByTestId("form"));
    expect(send).toHaveBeenCalledOnce();

    answers[0]?.reject(new ApiError("internal", 500, "internal"));
    await screen.findByTestId("error-state");
    expect(screen.getByTestId("send")).toBeEnabled();
    await userEvent.click(screen.getByTestId("send"));
    await waitFor(() => expect(send).toHaveBeenCalledTimes(2));
  });

  it("has a second way to submit that keeps the first one from being used meanwhile", async () => {
    const { send: end } = pending();
    const send = vi.fn<Send>();
    start(send, end);
    await userEvent.type(reason(), "Not right");
    await userEvent.click(screen.getByTestId("end"));
    await waitFor(() => expect(screen.getByTestId("end")).toHaveAttribute("data-loading", "true"));
    expect(screen.getByTestId("send")).toBeDisabled();
    expect(screen.getByTestId("send")).not.toHaveAttribute("data-loading");
    fireEvent.submit(screen.getByTestId("form"));
    expect(end).toHaveBeenCalledOnce();
    expect(send).not.toHaveBeenCalled();
  });

  it("moves the focus to the first wrong field and sends nothing", async () => {
    const send = vi.fn<Send>();
    start(send);
    await userEvent.type(name(), "orders{Enter}");
    expect(await screen.findByText("Enter a reason.")).toBeVisible();
    await waitFor(() => expect(reason()).toHaveFocus());
    expect(send).not.toHaveBeenCalled();
    // Once more: the error was there before.
    await userEvent.type(name(), "{Enter}");
    await waitFor(() => expect(reason()).toHaveFocus());
  });

  it("shows what the server refused at the fields, and focuses the first of them", async () => {
    start(() => Promise.reject(refused([{ field: "reason", message: verbatim("Too short.") }, { field: "items[0].name", message: verbatim("No such name.") }])));
    await userEvent.type(reason(), "x");
    await userEvent.click(screen.getByTestId("send"));
    expect(await screen.findByText("No such name.")).toBeVisible();
    expect(screen.getByText("Too short.")).toBeVisible();
    expect(screen.queryByTestId("error-state")).toBeNull();
    await waitFor(() => expect(name()).toHaveFocus());
  });

  it("focuses the chosen one of a group that is wrong", async () => {
    start(() => Promise.reject(refused([{ field: "until", message: verbatim("In the past.") }])));
    await userEvent.type(reason(), "x");
    await userEvent.click(screen.getByTestId("send"));
    await waitFor(() => expect(screen.getByLabelText("Day")).toHaveFocus());
  });

  it("shows a refused field that it does not have, too", async () => {
    start(() => Promise.reject(refused([{ field: "name", message: verbatim("No such name.") }, { field: "items[0].port", message: verbatim("Not a port.") }], "Two fields are wrong.")));
    await userEvent.type(reason(), "x");
    await userEvent.click(screen.getByTestId("send"));
    expect(await screen.findByText("No such name.")).toBeVisible();
    expect(screen.getByTestId("error-state")).toHaveTextContent("Two fields are wrong.");
    expect(screen.getByText("items[0].port").closest("li")).toHaveTextContent("items[0].port: Not a port.");
  });

  it("focuses a problem that is about no field", async () => {
    start(() => Promise.reject(new ApiError("unavailable", 503, "unavailable")));
    await userEvent.type(reason(), "x");
    await userEvent.click(screen.getByTestId("send"));
    const problem = await screen.findByTestId("error-state");
    await waitFor(() => expect(problem.parentElement).toHaveFocus());
  });

  it("shows no answer to an earlier attempt beside an error of its own", async () => {
    start(() => Promise.reject(refused([{ field: "port", message: verbatim("Not a port.") }])));
    await userEvent.type(reason(), "x");
    await userEvent.click(screen.getByTestId("send"));
    expect(await screen.findByText("port")).toBeVisible();
    await userEvent.clear(reason());
    await userEvent.click(screen.getByTestId("send"));
    expect(await screen.findByText("Enter a reason.")).toBeVisible();
    expect(screen.queryByTestId("error-state")).toBeNull();
  });
});

describe("closing a dialog that sends something", () => {
  it("needs no question when nothing was entered, or what was entered was taken back", async () => {
    const { closed } = start();
    await userEvent.type(reason(), "x");
    await userEvent.clear(reason());
    await userEvent.keyboard("{Escape}");
    expect(closed).toHaveBeenCalledOnce();
  });

  it("asks before input is lost, and Escape goes back to the field", async () => {
    const { closed } = start();
    await userEvent.type(reason(), "Checkout");
    await userEvent.keyboard("{Escape}");
    expect(screen.getByRole("group", { name: "Close without sending? Your input will be lost." })).toBeVisible();
    expect(screen.getByRole("button", { name: "Keep editing" })).toHaveFocus();
    expect(screen.queryByTestId("send")).toBeNull();

    await userEvent.keyboard("{Escape}");
    expect(screen.queryByTestId("discard-question")).toBeNull();
    expect(reason()).toHaveFocus();
    expect(reason()).toHaveValue("Checkout");
    expect(closed).not.toHaveBeenCalled();
  });

  it.each([
    { by: "its close button", close: () => userEvent.click(screen.getByRole("button", { name: "Close" })) },
    { by: "a click outside", close: () => userEvent.click(document.querySelector(".mantine-Modal-overlay") ?? document.body) },
  ])("by $by asks the same, and closes when input is discarded", async ({ close }) => {
    const { closed } = start();
    await userEvent.type(reason(), "Checkout");
    await close();
    expect(closed).not.toHaveBeenCalled();
    await userEvent.click(screen.getByRole("button", { name: "Discard" }));
    expect(closed).toHaveBeenCalledOnce();
  });

  it("does not send while it asks", async () => {
    const send = vi.fn<Send>();
    start(send);
    await userEvent.type(reason(), "Checkout");
    await userEvent.keyboard("{Escape}");
    fireEvent.submit(screen.getByTestId("form"));
    expect(send).not.toHaveBeenCalled();
  });

  it("by Cancel needs no question", async () => {
    const { closed } = start();
    await userEvent.type(reason(), "Checkout");
    await userEvent.click(screen.getByRole("button", { name: "Cancel" }));
    expect(closed).toHaveBeenCalledOnce();
  });

  it.each(["{Escape}", "Cancel"])("asks while the answer is awaited: %s", async (way) => {
    const { send, answers } = pending();
    const { closed } = start(send);
    await userEvent.type(reason(), "Checkout");
    await userEvent.click(screen.getByTestId("send"));
    await waitFor(() => expect(screen.getByTestId("form")).toHaveAttribute("aria-busy", "true"));
    await (way === "Cancel" ? userEvent.click(screen.getByRole("button", { name: "Cancel" })) : userEvent.keyboard(way));
    expect(closed).not.toHaveBeenCalled();
    expect(screen.getByRole("button", { name: "Wait for the answer" })).toHaveFocus();

    // The answer makes the question pointless.
    answers[0]?.reject(new ApiError("internal", 500, "internal"));
    await screen.findByTestId("error-state");
    expect(screen.queryByTestId("discard-question")).toBeNull();
    expect(reason()).toHaveValue("Checkout");
  });

  afterEach(() => chooseLanguage("en"));

  it("asks in Chinese", async () => {
    await chooseLanguage("zh");
    start();
    await userEvent.type(reason(), "x");
    await userEvent.keyboard("{Escape}");
    expect(screen.getByRole("group", { name: "不提交就关闭？已填写的内容将丢失。" })).toBeVisible();
    expect(screen.getByRole("button", { name: "继续填写" })).toHaveFocus();
    expect(screen.getByRole("button", { name: "放弃" })).toBeVisible();
  });
});

describe("a confirmation without fields", () => {
  it("focuses Cancel, and Escape closes it at once", async () => {
    const [confirm, close] = [vi.fn(), vi.fn()];
    renderPage(<ConfirmDialog title="End it" text="All of it." confirm="End" pending={false} error={undefined} testId="end" onConfirm={confirm} onClose={close} />, { path: "/", at: "/" });
    await waitFor(() => expect(screen.getByRole("button", { name: "Cancel" })).toHaveFocus());
    await userEvent.keyboard("{Escape}");
    expect(close).toHaveBeenCalledOnce();
    expect(confirm).not.toHaveBeenCalled();
  });
});
