// Formats numbers and times for the page.

export const score = (value) => value.toFixed(2);

export function counted(number, one, several = `${one}s`) {
  return `${number.toLocaleString("en")} ${number === 1 ? one : several}`;
}

export function seconds(value) {
  if (value < 60) return `${value.toFixed(1)} s`;
  return `${Math.floor(value / 60)} min ${String(Math.floor(value % 60)).padStart(2, "0")} s`;
}

// Formats US dollars; small amounts have two significant digits.
export function money(value) {
  if (value === 0) return "$0";
  return value >= 0.01 ? `$${value.toFixed(2)}` : `$${Number(value.toPrecision(2))}`;
}

export function clipped(text, length) {
  const line = text.replace(/\s+/g, " ").trim();
  return line.length > length ? `${line.slice(0, length - 1)}…` : line;
}

export function when(date, now = new Date()) {
  const minutes = Math.floor((now - date) / 60000);
  if (minutes < 1) return "just now";
  if (minutes < 60) return `${minutes} min ago`;
  const time = date.toLocaleTimeString([], {hour: "2-digit", minute: "2-digit"});
  return date.toDateString() === now.toDateString() ? time : `${date.toLocaleDateString([], {dateStyle: "medium"})}, ${time}`;
}
