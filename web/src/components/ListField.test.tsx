import { fireEvent, screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { useState } from "react";
import { describe, expect, it } from "vitest";
import { addressKey } from "../lib/entered-list";
import { renderPage } from "../testing/render";
import { ListField } from "./ListField";

function start(props: { max?: number; keyOf?: (value: string) => string } = {}) {
  function Form() {
    const [values, setValues] = useState<string[]>([]);
    return (
      <>
        <ListField label="Names" value={values} onChange={setValues} error={values.length === 0 && "Enter at least one."} testId="names" {...props} />
        <p data-testid="values">{values.join("|")}</p>
        <button type="button">Elsewhere</button>
      </>
    );
  }
  renderPage(<Form />, { path: "/", at: "/" });
}

const values = () => screen.getByTestId("values").textContent;

describe("a field for a list", () => {
  it("says that a value is there already, until the next input", async () => {
    start();
    const field = screen.getByTestId("names");
    await userEvent.type(field, "app-1{Enter}  app-1 {Enter}");
    expect(values()).toBe("app-1");
    expect(screen.getByText("Entered already: app-1")).toBeVisible();
    expect(field).toHaveAttribute("aria-invalid", "true");
    await userEvent.type(field, "A");
    expect(screen.queryByText("Entered already: app-1")).toBeNull();
    await userEvent.type(field, "pp-1{Enter}");
    expect(values()).toBe("app-1|App-1");
  });

  it("takes what was typed when it loses the focus, without spaces", async () => {
    start();
    await userEvent.type(screen.getByTestId("names"), "  app-1");
    await userEvent.click(screen.getByRole("button", { name: "Elsewhere" }));
    expect(values()).toBe("app-1");
    await userEvent.type(screen.getByTestId("names"), "  app-1");
    await userEvent.click(screen.getByRole("button", { name: "Elsewhere" }));
    expect(values()).toBe("app-1");
    expect(screen.getByText("Entered already: app-1")).toBeVisible();
  });

  it("takes a pasted list apart, each address once", () => {
    start({ keyOf: addressKey });
    fireEvent.paste(screen.getByTestId("names"), { clipboardData: { getData: () => "10.0.0.1\n10.0.0.2, 10.0.0.1/32;\t10.0.0.3" } });
    expect(values()).toBe("10.0.0.1|10.0.0.2|10.0.0.3");
    expect(screen.getByText("Entered already: 10.0.0.1/32")).toBeVisible();
  });

  it("counts what exceeds the limit instead of dropping it silently", async () => {
    start({ max: 2 });
    fireEvent.paste(screen.getByTestId("names"), { clipboardData: { getData: () => "a,b,c,d" } });
    expect(values()).toBe("a|b");
    expect(screen.getByText("At most 2: 2 more were not entered.")).toBeVisible();
    await userEvent.type(screen.getByTestId("names"), "{Backspace}");
    expect(values()).toBe("a");
    expect(screen.queryByText(/At most 2/)).toBeNull();
  });

  it("shows the error of the form otherwise", () => {
    start();
    expect(screen.getByText("Enter at least one.")).toBeVisible();
  });
});
