/** What build.mjs makes of an import of `worker:PATH`: the built worker as a text. */
declare module "worker:*" {
  const text: string;
  export default text;
}
