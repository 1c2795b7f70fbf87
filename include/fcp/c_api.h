/* A calibrated predictor from C, or from any language that calls C. Link libfcp.
 *
 *   fcp_predictor* p = fcp_load("calibrated.onnx", "cpu");
 *   if (p == NULL) { puts(fcp_last_error()); return 1; }
 *   const fcp_rows row = {.count = 1, .x = x};
 *   const char* levels[] = {"0.1"};
 *   double point, lower, upper;
 *   if (fcp_intervals(p, &row, levels, 1, &point, &lower, &upper) != 0) puts(fcp_last_error());
 *   fcp_free(p);
 *
 * A predictor never changes: any number of threads may use one at the same time, until it is freed.
 * Functions that return int return 0, or -1 where something is wrong; those that return a pointer
 * or a count return NULL or -1 then. fcp_last_error says what, in one line, for the calling thread.
 * No C++ exception leaves a function. Memory that a function fills belongs to the caller; strings
 * that it returns belong to the predictor and live as long.
 *
 * Levels are texts such as "0.1", which keep their exact value.
 *
 * Tested by tests/api/test_c_api.py and examples/4_from_c.c.
 */
#ifndef FCP_C_API_H_
#define FCP_C_API_H_

#include <stddef.h>

#if defined(__GNUC__)
#define FCP_C_API __attribute__((visibility("default")))
#else
#define FCP_C_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef struct fcp_predictor fcp_predictor;

/* "0.3.0". */
FCP_C_API const char* fcp_version(void);

/* What went wrong last in this thread; "" where nothing did. Valid until its next failing call. */
FCP_C_API const char* fcp_last_error(void);

/* device: "cpu" or "cuda". The caller frees the predictor. */
FCP_C_API fcp_predictor* fcp_load(const char* path, const char* device);
/* NULL is allowed. REQUIRES: no other thread uses the predictor. */
FCP_C_API void fcp_free(fcp_predictor* predictor);

/* Numbers in a row of x; -1 where the network leaves a size open. */
FCP_C_API long long fcp_row_size(const fcp_predictor* predictor);
/* Intervals per row; 1 for labels. */
FCP_C_API long long fcp_outputs(const fcp_predictor* predictor);
/* Labels to choose from; 0: the predictor gives intervals. */
FCP_C_API long long fcp_classes(const fcp_predictor* predictor);
/* The name of a label; NULL where index is out of range. */
FCP_C_API const char* fcp_class(const fcp_predictor* predictor, long long index);
/* Columns of the table on which the network was trained; 0: it takes numbers alone. */
FCP_C_API long long fcp_columns(const fcp_predictor* predictor);
FCP_C_API const char* fcp_column(const fcp_predictor* predictor, long long index);
/* The column that the calibration was grouped by; "": it was not. */
FCP_C_API const char* fcp_group_column(const fcp_predictor* predictor);
/* Whether regions need likelihood ratios: 1 or 0. */
FCP_C_API int fcp_needs_weights(const fcp_predictor* predictor);

/* Rows, in one of two forms: numbers x or texts cells. Members that are not set must be NULL. */
typedef struct fcp_rows {
  long long count;
  const float* x;            /* [count x fcp_row_size], row by row */
  const char* const* cells;  /* [count x fcp_columns], in the order of fcp_column; NULL or "":
                                missing */
  const char* const* groups; /* [count], where fcp_group_column is not "" */
  const double* weights;     /* [count], where fcp_needs_weights */
} fcp_rows;

/* Intervals at several levels, from one run of the network. points [rows x outputs]; lower and
 * upper [levels x rows x outputs]. Any of the three may be NULL. No levels: the points alone. */
FCP_C_API int fcp_intervals(const fcp_predictor* predictor, const fcp_rows* rows,
                            const char* const* levels, long long level_count, double* points,
                            double* lower, double* upper);

/* Regions that are unions of intervals (score density with level sets), part by part; a region of
 * any other score is its one interval. counts [levels x rows x outputs]: parts of each region. ends
 * [capacity x 2]: lower and upper end of the parts, ascending, one region after the other. Returns
 * the number of parts of all regions, or -1; where it is above capacity, ends holds the first ones.
 * counts may be NULL, and so may ends where capacity is 0. Calibration `localized` draws anew in
 * every call, so that a second call may find other parts. */
FCP_C_API long long fcp_parts(const fcp_predictor* predictor, const fcp_rows* rows,
                              const char* const* levels, long long level_count, long long* counts,
                              double* ends, long long capacity);

/* Label sets at several levels: members [levels x rows x classes], 1 where a label is in the set;
 * labels [rows], the label that the network predicts. Either may be NULL. */
FCP_C_API int fcp_label_sets(const fcp_predictor* predictor, const fcp_rows* rows,
                             const char* const* levels, long long level_count, long long* labels,
                             unsigned char* members);

/* What rows of cells have that no training row had, and the guarantee does not extend to, as
 * `fcp predict --flags` writes it: the text of each row, such as "unseen:city|range:size" or "",
 * ended by '\0', one after the other. Returns the bytes of all texts, or -1; where it is above
 * capacity,
 * nothing is written. texts may be NULL where capacity is 0. An error for rows of numbers. */
FCP_C_API long long fcp_flags(const fcp_predictor* predictor, const fcp_rows* rows, char* texts,
                              long long capacity);

/* p_values [rows] of the truths y [rows x outputs], or one label per row: small ones are unusual.
 * An error where each output has one of its own (joint each). */
FCP_C_API int fcp_p_values(const fcp_predictor* predictor, const fcp_rows* rows, const float* y,
                           double* p_values);

/* Of predictive distributions (fcp/distribution.h): the quantiles [rows x probabilities] of each
 * row at probabilities such as "0.95". */
FCP_C_API int fcp_quantiles(const fcp_predictor* predictor, const fcp_rows* rows,
                            const char* const* probabilities, long long probability_count,
                            double* quantiles);

/* Between which numbers the probability of from < y <= to lies, of each row [rows]. Either end may
 * be infinite. */
FCP_C_API int fcp_probability(const fcp_predictor* predictor, const fcp_rows* rows, double from,
                              double to, double* lower, double* upper);

/* Of labels, all [rows x classes]: the probabilities of the classes, and the pair of a predictor
 * that was calibrated with venn-abers (fcp/probabilities.h). p0 and p1 may be NULL; where the
 * predictor has no pair, they must be. */
FCP_C_API int fcp_class_probabilities(const fcp_predictor* predictor, const fcp_rows* rows,
                                      double* merged, double* p0, double* p1);

/* Which of so many p-values are discoveries, 1 or 0 each, with a share of false ones of at most
 * rate, such as "0.1", on average (fcp/outliers.h). */
FCP_C_API int fcp_discoveries(const double* p_values, long long count, const char* rate,
                              unsigned char* discoveries);

#ifdef __cplusplus
}
#endif

#endif /* FCP_C_API_H_ */
