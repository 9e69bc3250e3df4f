import { MantineProvider } from "@mantine/core";
import { fireEvent, render, screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { describe, expect, it, vi } from "vitest";
import { theme } from "../theme";
import { SearchField } from "./SearchField";

function start(value = "") {
  const onChange = vi.fn<(text: string) => void>();
  const field = (value: string) => (
    <MantineProvider theme={theme}>
      <SearchField label="Search" value={value} onChange={onChange} testId="field" />
    </MantineProvider>
  );
  const { rerender } = render(field(value));
  return { onChange, arrive: (value: string) => rerender(field(value)), input: screen.getByTestId<HTMLInputElement>("field") };
}

describe("a search field", () => {
  it("reports its text once, after the typing", async () => {
    const { onChange, input } = start();
    await userEvent.type(input, "T-42 ");
    await waitFor(() => expect(onChange).toHaveBeenLastCalledWith("T-42"));
  });

  it("keeps what is typed while an earlier part of it arrives in the URL", () => {
    const { arrive, input } = start();
    for (const text of ["T", "T-", "T-4"]) fireEvent.change(input, { target: { value: text } });
    arrive("T");
    expect(input).toHaveValue("T-4");
    fireEvent.change(input, { target: { value: "T-42" } });
    arrive("T-4");
    expect(input).toHaveValue("T-42");
    arrive("T-42");
    expect(input).toHaveValue("T-42");
  });

  it("follows the URL after typing that changed nothing", async () => {
    const { onChange, arrive, input } = start("T-1");
    fireEvent.change(input, { target: { value: "T-1 " } });
    await waitFor(() => expect(onChange).toHaveBeenLastCalledWith("T-1"));
    arrive("T-2");
    expect(input).toHaveValue("T-2");
  });

  it("follows the URL when it changes elsewhere", () => {
    const { arrive, input } = start("T-1");
    arrive("T-2");
    expect(input).toHaveValue("T-2");
    fireEvent.change(input, { target: { value: "T-3" } });
    arrive("T-3");
    arrive("");
    expect(input).toHaveValue("");
    fireEvent.change(input, { target: { value: "T-4" } });
    fireEvent.blur(input); // for a click on "Clear filters"
    arrive("T-5");
    expect(input).toHaveValue("T-5");
  });
});
