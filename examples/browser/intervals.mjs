// An exported file answered in a browser, or by Node.js, with onnxruntime-web: no server, no fcp.
//
//   $ fcp export model.onnx --alpha 0.1 --out exported.onnx
//
//   import * as ort from "onnxruntime-web";
//   import { load } from "./intervals.mjs";
//   const predictor = await load(ort, "exported.onnx");
//   await predictor.predict([[3.2, 17, 4, 2, 0, 0.7, 1, 12]]);  // [{lower: 24.25, upper: 36.5}]

const REGION = /(^|[^a-z])(lower|upper|in_set)(_[0-9.e-]+)?$/;

// `model` is the file's address or its bytes, as ort.InferenceSession.create takes it.
export async function load(ort, model) {
  const session = await ort.InferenceSession.create(model);
  const regions = session.outputNames.filter((name) => REGION.test(name));
  if (regions.length === 0) {
    const found = `found the outputs ${session.outputNames.join(", ")}`;
    throw new Error(`${found}, expected lower and upper, or in_set: use fcp export`);
  }
  if (session.inputNames.length !== 1) {
    throw new Error(`found the inputs ${session.inputNames.join(", ")}, expected one`);
  }
  const [input] = session.inputNames;

  // Rows of numbers as the network takes them, NaN for one that is missing. For each row its regions
  // by name: a number for one target, else an array; of in_set booleans, one for each class.
  async function predict(rows) {
    const width = rows[0]?.length ?? 0;
    rows.forEach((row, i) => {
      const wrong = row.length !== width || row.findIndex((x) => typeof x !== "number") >= 0;
      if (!wrong) return;
      throw new Error(`row ${i} (from 0): found ${JSON.stringify(row)}, expected ${width} numbers`);
    });
    const x = new ort.Tensor("float32", Float32Array.from(rows.flat()), [rows.length, width]);
    const answers = await session.run({ [input]: x }, regions);
    return rows.map((_, i) => {
      const region = (name) => {
        const { data, type } = answers[name];
        const each = data.length / rows.length;
        const kind = type === "bool" ? Boolean : Number;
        const own = Array.from(data.subarray(i * each, (i + 1) * each), kind);
        return each === 1 && type !== "bool" ? own[0] : own;
      };
      return Object.fromEntries(regions.map((name) => [name, region(name)]));
    });
  }
  return { predict };
}
