"""A little of every other file here, for each run of the fast tests: every command loads libtorch,
half a second, so there are some thirty; the demo itself trains for minutes of a busy core."""
import program

NAMES = (
    "test_console.Console.test_help_lists_the_verbs",
    "test_console.Console.test_help_of_every_verb_has_an_example",
    "test_console.Console.test_rows_alone_on_stdout",
    "test_console.Console.test_version",
    "test_bad_input.BadInput.test_bad_usage",
    "test_bad_input.BadInput.test_cut_that_leaks",
    "test_bad_input.BadInput.test_late_error_leaves_no_prediction",
    "test_bad_input.BadInput.test_nan_in_npy",
    "test_bad_input.BadInput.test_not_onnx",
    "test_bad_input.BadInput.test_text_in_a_number_column",
    "test_fit.Fit.test_messy_table_to_intervals",
    "test_fit.Fit.test_schema_is_shown_and_overridden",
    "test_fit.Fit.test_split_writes_files",
    "test_road.Road.test_demo_leaves_every_file",
    "test_road.Road.test_nested",
    "test_road.Road.test_run_takes_names_and_any_order",
    "test_road.Road.test_train_takes_options_before_the_data",
)


def load_tests(loader, _tests, _pattern):
    return loader.loadTestsFromNames(NAMES)


if __name__ == "__main__":
    program.main()
