import { screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { describe, expect, it, vi } from "vitest";
import { SentProgress } from "../components/SentProgress";
import { renderPage } from "../testing/render";
import { useBatches } from "./batches";

interface Props {
  send: (part: number[]) => Promise<string[]>;
  onSettled: () => void;
  total: number;
}

function Sender({ send, onSettled, total }: Props) {
  const batches = useBatches<number, string>(2, onSettled);
  return (
    <>
      <button type="button" onClick={() => batches.send({ entries: Array.from({ length: total }, (_, i) => i), send })}>send</button>
      <p data-testid="data">{batches.data?.join(" ")}</p>
      <p data-testid="error">{batches.error instanceof Error ? batches.error.message : ""}</p>
      <SentProgress progress={batches.progress} size={2} />
    </>
  );
}

const answer = (part: number[]) => Promise.resolve(part.map((each) => `r${each}`));

function show(send: Props["send"], total = 5) {
  const onSettled = vi.fn();
  const page = renderPage(<Sender send={send} onSettled={onSettled} total={total} />, { path: "/", at: "/" });
  return { onSettled, ...page };
}

describe("many entries", () => {
  it("are sent in calls of at most the size, one after the other", async () => {
    const send = vi.fn(answer);
    const { onSettled } = show(send);
    await userEvent.click(screen.getByText("send"));
    await waitFor(() => expect(screen.getByTestId("data")).toHaveTextContent("r0 r1 r2 r3 r4"));
    expect(send.mock.calls.map(([part]) => part)).toEqual([[0, 1], [2, 3], [4]]);
    expect(screen.getByTestId("sent-progress")).toHaveTextContent("5 of 5 sent");
    expect(onSettled).toHaveBeenCalledOnce();
  });

  it("continue after an error with those that have no answer", async () => {
    let broken = true;
    const send = vi.fn((part: number[]) => {
      if (!part.includes(2) || !broken) return answer(part);
      broken = false;
      return Promise.reject(new Error("away"));
    });
    const { onSettled } = show(send);
    await userEvent.click(screen.getByText("send"));
    await waitFor(() => expect(screen.getByTestId("error")).toHaveTextContent("away"));
    expect(screen.getByTestId("sent-progress")).toHaveTextContent("2 of 5 sent");
    expect(screen.getByTestId("data")).toBeEmptyDOMElement();
    expect(onSettled).toHaveBeenCalledOnce();
    await userEvent.click(screen.getByText("send"));
    await waitFor(() => expect(screen.getByTestId("data")).toHaveTextContent("r0 r1 r2 r3 r4"));
    expect(send.mock.calls.map(([part]) => part)).toEqual([[0, 1], [2, 3], [2, 3], [4]]);
  });

  it("are not sent any more when the dialog is gone", async () => {
    let answered: (results: string[]) => void = () => undefined;
    const send = vi.fn(() => new Promise<string[]>((resolve) => { answered = resolve; }));
    const { router } = show(send);
    await userEvent.click(screen.getByText("send"));
    await waitFor(() => expect(send).toHaveBeenCalledOnce());
    // The answer comes at the moment in which the dialog is gone.
    const gone = new Promise<void>((resolve) => {
      const observer = new MutationObserver(() => {
        if (!screen.queryByText("elsewhere")) return;
        observer.disconnect();
        answered(["r0", "r1"]);
        resolve();
      });
      observer.observe(document.body, { childList: true, subtree: true });
    });
    await router.navigate("/elsewhere");
    await gone;
    await new Promise((resolve) => setTimeout(resolve, 20));
    expect(send).toHaveBeenCalledOnce();
  });

  it("have no progress if they fit into one call", async () => {
    show(answer, 2);
    await userEvent.click(screen.getByText("send"));
    await waitFor(() => expect(screen.getByTestId("data")).toHaveTextContent("r0 r1"));
    expect(screen.queryByTestId("sent-progress")).toBeNull();
  });
});
